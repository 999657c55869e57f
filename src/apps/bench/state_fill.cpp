#include "apps/bench/state_fill.h"

#include <algorithm>
#include <filesystem>

#include "apps/bench/test_timer.h"
#include "base/random.h"
#include "engine/state_file.h"
#include "quant/formats.h"

namespace godwit::apps {
namespace {

// Made once and repeated: every position has memory of its own whatever it holds.
constexpr size_t kPatternPositions = 512;
// A whole number of what any backend settles at once (backend/cpu/delta_chunk.h: 16), so that the
// exported state is nothing but rows and matrices, good at any other position.
constexpr size_t kFixedTokens = 64;
static_assert(kFixedTokens < kLeastFillContext);

// `n` numbers of a type whose blocks divide it.
void append_random(TensorType type, size_t n, RandomStream& random, std::vector<std::byte>& out) {
  const quant::Format& format = *quant::find_format(type);
  const TensorGeometry& geometry = tensor_geometry(type);
  for (size_t i = 0; i < n / geometry.block_weights; ++i) {
    const size_t at = out.size();
    out.resize(at + geometry.block_bytes);
    format.random_block(random, 1.0f, &out[at]);
  }
}

// The recurrent states after a short prompt.
Result<std::vector<std::byte>> lived_in_state(engine::Session& session) {
  std::vector<std::byte> fixed(session.state_shape().fixed_bytes);
  if (fixed.empty()) return fixed;
  const std::vector<TokenId> prompt = bench_tokens(session.engine(), kFixedTokens);
  session.reset();
  if (Status s = session.set_prompt(prompt, {}); !s) {
    return fail(Error(s.error()).with("a prompt for the recurrent states"));
  }
  session.export_state({0, prompt.size()}, {.positions = {}, .fixed = fixed});
  return fixed;
}

}  // namespace

Result<StateFill> parse_state_fill(const std::string& text) {
  if (text == "random") return StateFill{.kind = StateFill::Kind::kRandom};
  if (text == "zeros") return StateFill{.kind = StateFill::Kind::kZeros};
  std::error_code unknown;
  if (!text.empty() && std::filesystem::is_regular_file(text, unknown)) {
    return StateFill{.kind = StateFill::Kind::kFile, .path = text};
  }
  return fail("--fill-state '{}': expected random, zeros, or a file that --state of run wrote",
              text);
}

std::vector<std::byte> random_positions(const program::Program& program,
                                        const backend::StateShape& shape, size_t n_positions,
                                        uint64_t seed) {
  std::vector<std::byte> bytes;
  bytes.reserve(n_positions * shape.position_bytes);
  RandomStream random(seed);
  for (size_t i = 0; i < n_positions; ++i) {
    for (const program::Kv& kv : program.kvs) {
      const size_t n = size_t{kv.n_kv_heads} * kv.head_dim;
      append_random(shape.k_type, n, random, bytes);
      append_random(shape.v_type, n, random, bytes);
    }
  }
  return bytes;
}

Result<StateFiller> StateFiller::create(engine::Session& session, const StateFill& fill,
                                        uint64_t seed) {
  StateFiller filler;
  filler.fill_ = fill;
  filler.n_pattern_ = kPatternPositions;
  const backend::StateShape shape = session.state_shape();
  switch (fill.kind) {
    case StateFill::Kind::kRandom: {
      filler.positions_ =
          random_positions(session.engine().program(), shape, kPatternPositions, seed);
      Result<std::vector<std::byte>> fixed = lived_in_state(session);
      if (!fixed) return fail(std::move(fixed).error());
      filler.fixed_ = *std::move(fixed);
      break;
    }
    case StateFill::Kind::kZeros:
      filler.positions_.resize(kPatternPositions * shape.position_bytes);
      filler.fixed_.resize(shape.fixed_bytes);
      break;
    case StateFill::Kind::kFile: {
      const Result<std::string> note = engine::restore_session(session, fill.path);
      if (!note) return fail(note.error());
      filler.file_tokens_.assign(session.tokens().begin(), session.tokens().end());
      break;
    }
  }
  return filler;
}

Status StateFiller::fill_from_file(engine::Session& session, size_t n_positions) {
  if (n_positions > n_file_positions()) {
    return fail("start position {}: {} holds {} positions", n_positions, fill_.path,
                n_file_positions());
  }
  const bool fixed = session.state_shape().fixed_bytes > 0;
  if (fixed && n_positions < n_file_positions()) {
    return fail("start position {}: the recurrent states of {} are known at {} only", n_positions,
                fill_.path, n_file_positions());
  }
  // What was appended since has only gone over positions from n_positions on, which the file has.
  const Result<std::string> note = engine::restore_session(session, fill_.path);
  if (!note) return fail(note.error());
  session.truncate(n_positions);
  return {};
}

Status StateFiller::fill(engine::Session& session, size_t n_positions) {
  const engine::Engine& engine = session.engine();
  if (n_positions >= engine.plan().n_context) {
    return fail("start position {}: the context holds {} (-c)", n_positions,
                engine.plan().n_context);
  }
  if (fill_.kind == StateFill::Kind::kFile) return fill_from_file(session, n_positions);
  backend::Backend& backend = engine.backend();
  const size_t position_bytes = session.state_shape().position_bytes;
  // The positions from n_positions on will be gone over, and are made anew when they count.
  for (size_t at = std::min(n_filled_, n_positions); at < n_positions && position_bytes > 0;) {
    const size_t n = std::min(n_pattern_ - at % n_pattern_, n_positions - at);
    const std::span<const std::byte> part =
        std::span(positions_).subspan(at % n_pattern_ * position_bytes, n * position_bytes);
    backend.import_state(session.context(), {at, at + n}, {.positions = part, .fixed = {}});
    at += n;
  }
  n_filled_ = n_positions;
  // At position 0 a run begins from nothing.
  const bool fixed = n_positions > 0;
  session.restore(
      bench_tokens(engine, n_positions),
      {.positions = {},
       .fixed = fixed ? std::span<const std::byte>(fixed_) : std::span<const std::byte>()});
  return {};
}

}  // namespace godwit::apps
