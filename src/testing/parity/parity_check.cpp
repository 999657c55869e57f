#include "testing/parity/parity_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "backend/kv_rounding.h"
#include "base/random.h"
#include "base/small_letters.h"
#include "quant/formats.h"

namespace godwit::testing {
namespace {

using backend::Backend;
using backend::ContextId;

// A context of a backend, given back at the end.
class OwnContext {
 public:
  [[nodiscard]] static Result<OwnContext> create(Backend& backend,
                                                 const backend::ContextSettings& settings) {
    const Result<ContextId> id = backend.make_context(settings);
    if (!id) return fail(id.error());
    return OwnContext(backend, *id);
  }
  OwnContext(OwnContext&& other) noexcept
      : backend_(std::exchange(other.backend_, nullptr)), id_(other.id_) {}
  OwnContext& operator=(OwnContext&&) = delete;
  ~OwnContext() {
    if (backend_ != nullptr) backend_->release_context(id_);
  }

  // Appends tokens from `first` on in calls of at most `group` rows, with the logits of the last.
  [[nodiscard]] Status run(const program::Program& program, std::span<const TokenId> tokens,
                           size_t first, size_t group) const {
    std::vector<program::Row> rows;
    for (size_t done = 0; done < tokens.size(); done += rows.size()) {
      rows.clear();
      for (size_t i = done; i < std::min(tokens.size(), done + group); ++i) {
        rows.push_back({.token = tokens[i],
                        .position = {static_cast<int32_t>(first + i)},
                        .wants_logits = i + 1 == tokens.size()});
      }
      if (Status s = backend_->run(id_, rows, {0, program.main.size()}); !s) return s;
    }
    return {};
  }
  [[nodiscard]] std::vector<float> logits() const {
    const std::span<const float> found = backend_->logits(id_);
    return {found.begin(), found.end()};
  }
  [[nodiscard]] backend::StateShape shape() const { return backend_->state_shape(id_); }

  struct State {
    std::vector<std::byte> positions;
    std::vector<std::byte> fixed;
  };
  [[nodiscard]] State state(size_t n_positions) const {
    State found = {std::vector<std::byte>(n_positions * shape().position_bytes),
                   std::vector<std::byte>(shape().fixed_bytes)};
    backend_->export_state(id_, {0, n_positions},
                           {.positions = found.positions, .fixed = found.fixed});
    return found;
  }
  void put(backend::PositionRange range, const State& from) const {
    backend_->import_state(id_, range, {.positions = from.positions, .fixed = from.fixed});
  }

 private:
  OwnContext(Backend& backend, ContextId id) : backend_(&backend), id_(id) {}
  Backend* backend_;
  ContextId id_;
};

backend::ContextSettings settings_of(const ParitySubject& subject, uint64_t n_positions,
                                     size_t rows) {
  return {.n_positions = n_positions,
          .k_type = subject.k_type,
          .v_type = subject.v_type,
          .max_rows = rows,
          .max_logit_rows = 1};
}

// Compares logits and the state left behind, to the bit.
void compare(const OwnContext& a, const OwnContext& b, size_t n_positions, const std::string& what,
             FindingTally& tally) {
  tally.begin_case();
  tally.add_bits(a.logits(), b.logits(), [&] { return what + ": logits"; });
  const OwnContext::State left = a.state(n_positions);
  const OwnContext::State right = b.state(n_positions);
  if (left.positions != right.positions) {
    tally.add(1.0, 0.0, [&] { return what + ": keys or values"; });
  }
  if (left.fixed != right.fixed) {
    tally.add(1.0, 0.0, [&] { return what + ": recurrent states"; });
  }
}

// Positions [begin, end) of a history that nobody computed: those of a text in a seeded order, as
// backend/state.h lays them out. Its first ones stay where they are, since models lean on them.
// Numbers that no text leaves behind would not do: they drive a model where activations are so
// uneven that rounding them moves its answers.
std::vector<std::byte> made_up(std::span<const std::byte> text, size_t position_bytes,
                               backend::PositionRange range, uint64_t seed) {
  constexpr uint64_t kKept = 4;
  const size_t n_text = text.size() / position_bytes;
  std::vector<std::byte> bytes(range.size() * position_bytes);
  for (uint64_t i = range.begin; i < range.end; ++i) {
    const uint64_t from = i < kKept ? i : random_bits(seed, i) % n_text;
    std::memcpy(&bytes[(i - range.begin) * position_bytes], &text[from * position_bytes],
                position_bytes);
  }
  return bytes;
}

bool is_float(TensorType type) { return type == TensorType::kF32 || type == TensorType::kF64; }

// Numbers as a type that holds every one of them.
void put_widened(std::span<const float> numbers, TensorType type, std::byte*& at) {
  for (const float number : numbers) {
    const auto wide = static_cast<double>(number);
    const size_t n = type == TensorType::kF64 ? sizeof(double) : sizeof(float);
    std::memcpy(at, type == TensorType::kF64 ? static_cast<const void*>(&wide) : &number, n);
    at += n;
  }
}

// Positions of one shape as positions of another that keeps floats: an oracle rounds its history as
// asked, but computes on with wider numbers.
std::vector<std::byte> widened(const program::Program& program, const backend::StateShape& from,
                               const backend::StateShape& to, std::span<const std::byte> bytes) {
  if (from == to) return {bytes.begin(), bytes.end()};
  std::vector<std::byte> out(bytes.size() / from.position_bytes * to.position_bytes);
  std::vector<float> numbers;
  std::byte* at = out.data();
  const auto widen = [&](TensorType type, TensorType wide, size_t n) {
    numbers.resize(n);
    const size_t n_bytes = row_bytes(type, n);
    quant::decode_row(type, bytes.first(n_bytes), numbers);
    bytes = bytes.subspan(n_bytes);
    put_widened(numbers, wide, at);
  };
  while (!bytes.empty()) {
    for (const program::Kv& kv : program.kvs) {
      widen(from.k_type, to.k_type, size_t{kv.n_kv_heads} * kv.head_dim);
      widen(from.v_type, to.v_type, size_t{kv.n_kv_heads} * kv.head_dim);
    }
  }
  return out;
}

// The logits after each token of the text's second half, one call per row, each handed out.
Status run_second_half(const ParitySubject& subject, const OwnContext& context,
                       const std::function<void(size_t, std::vector<float>)>& take) {
  const size_t half = subject.text.size() / 2;
  if (Status s = context.run(subject.program, subject.text.first(half), 0, half); !s) return s;
  for (size_t i = half; i < subject.text.size(); ++i) {
    if (Status s = context.run(subject.program, subject.text.subspan(i, 1), i, 1); !s) return s;
    take(i, context.logits());
  }
  return {};
}

}  // namespace

double divergence(std::span<const float> base, std::span<const float> other) {
  const auto log_sum = [](std::span<const float> logits, double most) {
    double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<double>(x) - most);
    return most + std::log(sum);
  };
  const double base_sum = log_sum(base, static_cast<double>(*std::ranges::max_element(base)));
  const double other_sum = log_sum(other, static_cast<double>(*std::ranges::max_element(other)));
  // Sum of p ln(p / q) with p ln(p / q) - p + q instead, which is never negative: the surplus adds
  // up to 0 in exact arithmetic, and rounding does not drown small distances.
  double sum = 0;
  for (size_t i = 0; i < base.size(); ++i) {
    const double log_p = static_cast<double>(base[i]) - base_sum;
    const double log_q = static_cast<double>(other[i]) - other_sum;
    const double p = std::exp(log_p);
    const double gap = log_q - log_p;
    sum += p * (std::expm1(gap) - gap);
  }
  return sum;
}

Status check_groups(const ParitySubject& subject, const FindingSink& sink) {
  FindingTally tally("groups of rows and single rows", "bits", 0.0);
  const size_t n = subject.text.size();
  const auto singly = OwnContext::create(subject.backend, settings_of(subject, n, 1));
  if (!singly) return fail(singly.error());
  if (Status s = singly->run(subject.program, subject.text, 0, 1); !s) return s;
  for (const size_t group : {size_t{2}, size_t{7}, size_t{16}, size_t{64}, n}) {
    const auto grouped = OwnContext::create(subject.backend, settings_of(subject, n, group));
    if (!grouped) return fail(grouped.error());
    if (Status s = grouped->run(subject.program, subject.text, 0, group); !s) return s;
    compare(*grouped, *singly, n, fmt::format("{} tokens by {}", n, group), tally);
  }
  sink(tally.finding());
  return {};
}

Status check_restored(const ParitySubject& subject, const FindingSink& sink) {
  FindingTally tally("a history put back", "bits", 0.0);
  const size_t n = subject.text.size();
  const size_t group = 16;
  const auto whole = OwnContext::create(subject.backend, settings_of(subject, n, group));
  if (!whole) return fail(whole.error());
  for (const size_t cut : {n / 4 / group * group, n / 2 / group * group, n - 1}) {
    const auto first = OwnContext::create(subject.backend, settings_of(subject, n, group));
    const auto second = OwnContext::create(subject.backend, settings_of(subject, n, group));
    if (!first) return fail(first.error());
    if (!second) return fail(second.error());
    if (Status s = whole->run(subject.program, subject.text, 0, group); !s) return s;
    if (Status s = first->run(subject.program, subject.text.first(cut), 0, group); !s) return s;
    second->put({0, cut}, first->state(cut));
    const std::span<const TokenId> rest = subject.text.subspan(cut);
    if (Status s = second->run(subject.program, rest, cut, group); !s) return s;
    compare(*second, *whole, n, fmt::format("after {} of {} tokens", cut, n), tally);
  }
  sink(tally.finding());
  return {};
}

Status check_kv_types(const ParitySubject& subject, const FindingSink& sink) {
  ParitySubject as = subject;
  std::vector<std::vector<float>> base;
  const size_t half = subject.text.size() / 2;
  for (const TensorType type : backend::kKvTypes) {
    const bool fits = std::ranges::all_of(subject.program.kvs, [&](const program::Kv& kv) {
      return backend::check_kv(type, kv.head_dim).has_value();
    });
    if (!fits) continue;
    as.k_type = type;
    as.v_type = type;
    const auto context = OwnContext::create(
        subject.backend, settings_of(as, subject.text.size(), std::max<size_t>(half, 1)));
    if (!context) return fail(context.error());
    double sum = 0;
    double most = 0;
    size_t n = 0;
    const Status ran = run_second_half(as, *context, [&](size_t i, std::vector<float> logits) {
      if (type == TensorType::kF32) {
        base.push_back(std::move(logits));
        return;
      }
      const double kl = divergence(base[i - half], logits);
      sum += kl;
      most = kl > most ? kl : most;
      ++n;
    });
    if (!ran) return ran;
    if (type == TensorType::kF32) continue;
    const std::string name = fmt::format("KV {} from f32", small_letters(tensor_type_name(type)));
    constexpr double kTold = std::numeric_limits<double>::infinity();
    sink({.subject = name,
          .property = "mean KL",
          .n_cases = n,
          .error = sum / static_cast<double>(n),
          .bound = kTold,
          .at = ""});
    sink({.subject = name,
          .property = kMostDivergence,
          .n_cases = n,
          .error = most,
          .bound = kTold,
          .at = ""});
  }
  return {};
}

Status check_depth(const ParitySubject& subject, Backend& oracle, const DepthCheck& check,
                   const FindingSink& sink) {
  constexpr size_t kPiece = 256;  // positions made up at a time
  const uint64_t n = check.n_positions;
  const auto a = OwnContext::create(subject.backend, settings_of(subject, n + check.n_steps, 1));
  if (!a) return fail(a.error());
  const auto b = OwnContext::create(oracle, settings_of(subject, n + check.n_steps, 1));
  if (!b) return fail(b.error());
  if (a->shape().fixed_bytes != 0) {
    return fail("check parity: a history of recurrent states cannot be made up");
  }
  const backend::StateShape kept = b->shape();
  if (a->shape() != kept && !(is_float(kept.k_type) && is_float(kept.v_type))) {
    return fail("check parity: the oracle keeps its history in types of its own");
  }
  const auto read = OwnContext::create(
      subject.backend, settings_of(subject, subject.text.size(), subject.text.size()));
  if (!read) return fail(read.error());
  if (Status s = read->run(subject.program, subject.text, 0, subject.text.size()); !s) return s;
  const OwnContext::State text = read->state(subject.text.size());
  for (uint64_t at = 0; at < n; at += kPiece) {
    const uint64_t end = std::min<uint64_t>(n, at + kPiece);
    const std::vector<std::byte> piece =
        made_up(text.positions, a->shape().position_bytes, {at, end}, check.seed);
    a->put({at, end}, {piece, {}});
    b->put({at, end}, {widened(subject.program, a->shape(), kept, piece), {}});
  }
  const double bound = kDepthBound + check.type_divergence;
  FindingTally tally(fmt::format("{} steps at {} positions", check.n_steps, n), "KL", bound);
  for (size_t i = 0; i < check.n_steps; ++i) {
    const TokenId token = subject.text[i % subject.text.size()];
    if (Status s = a->run(subject.program, {&token, 1}, n + i, 1); !s) return s;
    if (Status s = b->run(subject.program, {&token, 1}, n + i, 1); !s) return s;
    tally.begin_case();
    tally.add(divergence(b->logits(), a->logits()), bound,
              [&] { return fmt::format("step {}", i); });
  }
  sink(tally.finding());
  return {};
}

}  // namespace godwit::testing
