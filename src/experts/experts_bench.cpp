// godwit_experts_bench TRACE [options]: replays a trace of routed experts (route_trace.h) against
// one file under several budgets, and prints for each what was hit, what was read and from where,
// and how many tokens per second that allows. An expert is "computed" by reading its slot once,
// on one thread, which is what a mat-vec that memory limits costs. Ends with 1 if a budget was
// slower than a smaller one. Before each budget the file is dropped from the page cache; the first
// quarter of the tokens fills the cache and is not counted.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "experts/route_trace.h"
#include "experts/store.h"
#include "gguf/writer.h"
#include "os/memory.h"

namespace godwit::experts {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kMib = 1 << 20;
constexpr double kTolerance = 0.05;  // of tokens per second, before slower counts as slower

constexpr const char* kUsage =
    "usage: godwit_experts_bench TRACE [--model FILE | --slice-kib N] [--read direct|buffered]\n"
    "                            [--threads N] [--hints SHARE] [--rounds N] [--folder DIR]\n"
    "--model has blk.N.ffn_{gate,up,down}_exps.weight; else a file is made in --folder (/tmp) "
    "whose\n"
    "experts have three slices of --slice-kib (256). --hints: the next layer's experts are asked\n"
    "for ahead, this share of them rightly.\n";

struct Settings {
  std::string trace;
  std::string model;
  std::string folder = "/tmp";
  uint32_t slice_kib = 256;
  uint32_t n_threads = 4;
  int rounds = 1;
  double hints = 0;
  ReadMode read_mode = ReadMode::kDirect;
};

std::optional<Settings> parse_arguments(std::span<char*> arguments) {
  Settings settings;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string_view name = arguments[i];
    if (!name.starts_with("--")) {
      settings.trace = name;
      continue;
    }
    if (++i == arguments.size()) return std::nullopt;
    const std::string value = arguments[i];
    if (name == "--model") {
      settings.model = value;
    } else if (name == "--folder") {
      settings.folder = value;
    } else if (name == "--slice-kib") {
      settings.slice_kib = static_cast<uint32_t>(std::max(1, std::atoi(value.c_str())));
    } else if (name == "--threads") {
      settings.n_threads = static_cast<uint32_t>(std::max(1, std::atoi(value.c_str())));
    } else if (name == "--rounds") {
      settings.rounds = std::max(1, std::atoi(value.c_str()));
    } else if (name == "--hints") {
      settings.hints = std::atof(value.c_str());
    } else if (name == "--read" && (value == "direct" || value == "buffered")) {
      settings.read_mode = value == "direct" ? ReadMode::kDirect : ReadMode::kBuffered;
    } else {
      return std::nullopt;
    }
  }
  if (settings.trace.empty()) return std::nullopt;
  return settings;
}

std::string tensor_name(uint32_t layer, size_t part) {
  constexpr std::array<const char*, kParts> kNames = {"gate", "up", "down"};
  return fmt::format("blk.{}.ffn_{}_exps.weight", layer, kNames[part]);
}

// A file of random weights in the trace's shape; rows of 256 floats are 1 KiB.
Status make_model(const std::filesystem::path& path, TraceShape shape, uint32_t slice_kib) {
  std::vector<gguf::TensorSpec> specs;
  for (uint32_t layer = 0; layer < shape.n_layers; ++layer) {
    for (size_t part = 0; part < kParts; ++part) {
      specs.push_back(
          {tensor_name(layer, part), TensorType::kF32, {256, slice_kib, shape.n_experts}});
    }
  }
  Result<gguf::Writer> writer = gguf::Writer::create(path, {}, specs);
  if (!writer) return fail(std::move(writer.error()));
  std::vector<uint64_t> slice(size_t{slice_kib} * 1024 / sizeof(uint64_t));
  RandomStream random(1);
  for (size_t i = 0; i < specs.size() * shape.n_experts; ++i) {
    for (uint64_t& word : slice) word = random.bits();
    if (auto done = writer->append(std::as_bytes(std::span(slice))); !done) return done;
  }
  return writer->finish();
}

// What this process has read: from the kernel, and of that from the device.
struct Traffic {
  uint64_t asked = 0;
  uint64_t device = 0;
};

Traffic traffic_now() {
  Traffic traffic;
  std::ifstream in("/proc/self/io");
  std::string name;
  uint64_t value = 0;
  while (in >> name >> value) {
    if (name == "rchar:") traffic.asked = value;
    if (name == "read_bytes:") traffic.device = value;
  }
  return traffic;
}

void drop_from_page_cache(std::span<const std::filesystem::path> paths) {
  for (const std::filesystem::path& path : paths) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    ::close(file);
  }
}

uint64_t sum_of(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i + sizeof(uint64_t) <= bytes.size(); i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof(word));
    sum += word;
  }
  return sum;
}

struct Outcome {
  double tokens_per_second = 0;
  LayerStatistics counts;
  Traffic traffic;
  uint64_t checksum = 0;  // of all that was computed: the same whatever the budget
};

class Replay {
 public:
  Replay(const Settings& settings, const RouteTrace& trace, const std::filesystem::path& model)
      : settings_(settings), trace_(trace), model_(model) {}

  [[nodiscard]] Result<Outcome> run(CachePolicy policy);
  [[nodiscard]] Result<uint64_t> full_bytes();

 private:
  // Opened for each run, so that nothing of the file stays mapped.
  [[nodiscard]] Status open();
  [[nodiscard]] std::vector<LayerSize> sizes() const;
  [[nodiscard]] Result<uint64_t> replay(ExpertStore& store, std::span<const std::byte> memory,
                                        std::span<const RouteTrace::Event> events) const;
  void hint_next(ExpertStore& store, const RouteTrace::Event& next) const;

  const Settings& settings_;
  const RouteTrace& trace_;
  const std::filesystem::path& model_;
  std::optional<gguf::File> file_;
  std::optional<ExpertSource> source_;
};

Status Replay::open() {
  source_.reset();
  file_.reset();
  Result<gguf::File> file = gguf::File::open(model_);
  if (!file) return fail(std::move(file.error()));
  file_ = *std::move(file);
  std::vector<LayerTensors> layers(trace_.shape().n_layers);
  for (uint32_t layer = 0; layer < layers.size(); ++layer) {
    for (size_t part = 0; part < kParts; ++part) {
      layers[layer].parts[part] = file_->find_tensor(tensor_name(layer, part));
    }
  }
  Result<ExpertSource> source = ExpertSource::create(*file_, layers);
  if (!source) return fail(std::move(source.error()));
  source_ = *std::move(source);
  return {};
}

std::vector<LayerSize> Replay::sizes() const {
  std::vector<LayerSize> sizes;
  for (uint32_t layer = 0; layer < source_->n_layers(); ++layer) {
    sizes.push_back({source_->n_experts(layer), source_->file_bytes(layer)});
  }
  return sizes;
}

Result<uint64_t> Replay::full_bytes() {
  if (auto opened = open(); !opened) return fail(std::move(opened.error()));
  const auto plan = plan_slots(sizes(), {.kind = CacheKind::kFull}, trace_.max_in_use());
  if (!plan) return fail(plan.error());
  return plan->bytes;
}

void Replay::hint_next(ExpertStore& store, const RouteTrace::Event& next) const {
  std::vector<uint32_t> guess(trace_.experts(next).begin(), trace_.experts(next).end());
  for (size_t i = 0; i < guess.size(); ++i) {
    const uint64_t index = next.first + i;
    if (random_unit(5, index) < settings_.hints) continue;
    guess[i] = static_cast<uint32_t>(random_bits(6, index) % trace_.shape().n_experts);
  }
  store.hint(next.layer, guess);
}

Result<uint64_t> Replay::replay(ExpertStore& store, std::span<const std::byte> memory,
                                std::span<const RouteTrace::Event> events) const {
  uint64_t checksum = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    Result<Lease> lease = store.acquire(events[i].layer, trace_.experts(events[i]));
    if (!lease) return fail(std::move(lease.error()));
    if (settings_.hints > 0 && i + 1 < events.size()) hint_next(store, events[i + 1]);
    while (true) {
      const auto ready = lease->next();
      if (!ready) return fail(ready.error());
      if (!*ready) break;
      const Resident& expert = **ready;
      if (expert.slot.bytes > 0) {
        checksum +=
            sum_of(memory.subspan(expert.slot.offset, source_->file_bytes(events[i].layer)));
      }
      for (const std::span<const std::byte> part : expert.mapped) checksum += sum_of(part);
    }
  }
  return checksum;
}

Result<Outcome> Replay::run(CachePolicy policy) {
  if (auto opened = open(); !opened) return fail(std::move(opened.error()));
  drop_from_page_cache(source_->shards());
  auto plan = plan_slots(sizes(), policy, trace_.max_in_use());
  if (!plan) return fail(std::move(plan.error()));
  auto memory = AlignedBuffer::create(std::max<uint64_t>(plan->bytes, 1), kSlotAlignment);
  if (!memory) return fail(std::move(memory.error()));
  const auto pack = [&](const PackRequest& request) -> Status {
    std::span<std::byte> to = memory->bytes().subspan(request.slot.offset, request.slot.bytes);
    for (const std::span<const std::byte> part : request.parts) {
      std::ranges::copy(part, to.begin());
      to = to.subspan(part.size());
    }
    return {};
  };
  auto store = ExpertStore::create(
      *source_, *plan, pack,
      {.n_read_threads = settings_.n_threads, .read_mode = settings_.read_mode, .read = {}});
  if (!store) return fail(std::move(store.error()));

  const std::span<const RouteTrace::Event> events = trace_.events();
  const uint64_t first_token = events.front().token + trace_.n_tokens() / 4;
  const auto counted = std::ranges::lower_bound(events, first_token, {}, &RouteTrace::Event::token);
  const auto n_before = static_cast<size_t>(counted - events.begin());
  auto filled = replay(*store, memory->bytes(), events.first(n_before));
  if (!filled) return fail(std::move(filled.error()));
  const LayerStatistics before = store->statistics().total();
  const Traffic traffic = traffic_now();
  const Clock::time_point start = Clock::now();
  const auto checksum = replay(*store, memory->bytes(), events.subspan(n_before));
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!checksum) return fail(checksum.error());
  const Traffic after = traffic_now();
  Outcome outcome{.counts = store->statistics().total(), .traffic = {}, .checksum = *checksum};
  outcome.tokens_per_second = static_cast<double>(trace_.n_tokens() * 3 / 4) / seconds;
  outcome.traffic = {after.asked - traffic.asked, after.device - traffic.device};
  outcome.counts.hits -= before.hits;
  outcome.counts.misses -= before.misses;
  outcome.counts.bytes_read -= before.bytes_read;
  outcome.counts.stall_us -= before.stall_us;
  outcome.counts.prefetches -= before.prefetches;
  outcome.counts.prefetch_hits -= before.prefetch_hits;
  outcome.counts.prefetch_late -= before.prefetch_late;
  outcome.counts.prefetch_cancelled -= before.prefetch_cancelled;
  outcome.counts.prefetch_wasted -= before.prefetch_wasted;
  return outcome;
}

void print(std::string_view name, uint64_t budget_mib, const Outcome& outcome) {
  const double asked = static_cast<double>(outcome.traffic.asked) / kMib;
  const double device = static_cast<double>(outcome.traffic.device) / kMib;
  fmt::print("{:>6} {:>6} MiB  {:7.1f} tokens/s  device {:7.1f} MiB, page cache {:7.1f} MiB  {}\n",
             name, budget_mib, outcome.tokens_per_second, device, std::max(0.0, asked - device),
             describe(outcome.counts));
  std::fflush(stdout);
}

// Of some rounds, the fastest.
Result<Outcome> best_of(Replay& replay, CachePolicy policy, int rounds) {
  Result<Outcome> best = replay.run(policy);
  for (int i = 1; i < rounds && best; ++i) {
    Result<Outcome> again = replay.run(policy);
    if (!again || again->tokens_per_second > best->tokens_per_second) best = std::move(again);
  }
  return best;
}

// Whether no budget was slower than a smaller one.
Result<bool> sweep(const Settings& settings, const RouteTrace& trace,
                   const std::filesystem::path& model) {
  Replay replay(settings, trace, model);
  const Result<uint64_t> full = replay.full_bytes();
  if (!full) return fail(full.error());
  bool monotone = true;
  double fastest = 0;
  std::optional<uint64_t> checksum;
  for (const uint64_t percent : {6u, 12u, 25u, 50u, 100u}) {
    const uint64_t mib = (*full * percent / 100 + (1 << 20) - 1) >> 20;
    const auto outcome =
        best_of(replay, {.kind = CacheKind::kBudget, .budget_mib = std::max<uint64_t>(mib, 1)},
                settings.rounds);
    if (!outcome) {
      fmt::print("{:>5}% {:>6} MiB  {}\n", percent, mib, outcome.error().message);
      continue;
    }
    print(fmt::format("{}%", percent), mib, *outcome);
    monotone = monotone && outcome->tokens_per_second >= fastest * (1 - kTolerance);
    fastest = std::max(fastest, outcome->tokens_per_second);
    check(checksum.value_or(outcome->checksum) == outcome->checksum,
          "the result depends on the budget");
    checksum = outcome->checksum;
  }
  const auto mapped = best_of(replay, {.kind = CacheKind::kMapped}, settings.rounds);
  if (!mapped) return fail(mapped.error());
  print("mmap", 0, *mapped);
  return monotone;
}

int run(const Settings& settings) {
  const Result<RouteTrace> trace = RouteTrace::open(settings.trace);
  if (!trace || trace->events().empty()) {
    fmt::print(stderr, "{}\n", trace ? "the trace is empty" : trace.error().message);
    return 2;
  }
  std::filesystem::path model = settings.model;
  const bool made = model.empty();
  if (made) {
    model = std::filesystem::path(settings.folder) /
            fmt::format("godwit-experts-bench-{}.gguf", ::getpid());
    if (auto done = make_model(model, trace->shape(), settings.slice_kib); !done) {
      fmt::print(stderr, "{}\n", done.error().message);
      return 2;
    }
  }
  const Result<bool> monotone = sweep(settings, *trace, model);
  if (made) std::filesystem::remove(model);
  if (!monotone) {
    fmt::print(stderr, "{}\n", monotone.error().message);
    return 2;
  }
  if (!*monotone) fmt::print("a budget was slower than a smaller one\n");
  return *monotone ? 0 : 1;
}

}  // namespace
}  // namespace godwit::experts

int main(int argc, char** argv) {
  const auto settings = godwit::experts::parse_arguments({argv, static_cast<size_t>(argc)});
  if (!settings) {
    fmt::print(stderr, "{}", godwit::experts::kUsage);
    return 2;
  }
  return godwit::experts::run(*settings);
}
