// godwit_megakernel_bench: the persistent kernel alone, on random weights, without a file: checks
// every phase against double precision, repeats a token, times it beside the read bandwidth that
// the card shows in the same run. One binary, no other libraries: for a machine that has only a
// driver.
//   godwit_megakernel_bench check [number of models]
//   godwit_megakernel_bench small                    (for compute-sanitizer)
//   godwit_megakernel_bench time <positions>
//   <window,near,near_slots,half,last,pause[,evict_first[,keep]]>...
// GODWIT_BENCH_KEEP_MB=N times with N MB of weights kept in the L2 instead of 43.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>

#include "backend/cuda/persistent/bench/kernels.h"
#include "backend/cuda/persistent/bench/twin.h"
#include "program/traffic.h"

namespace godwit::cuda::persistent {
namespace {

constexpr double kTolerance = 1e-4;  // of a phase; the kernel is held to 1e-3

void stop_on(const Status& status) {
  if (status) return;
  std::printf("FAILED: %s\n", status.error().message.c_str());
  std::exit(1);
}
void stop_on(cudaError_t error) { stop_on(status_of(error, "a call of the bench")); }
template <class T>
T taken(Result<T> result) {
  if (!result) stop_on(tl::make_unexpected(result.error()));
  return std::move(*result);
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Microseconds of each of several repetitions.
template <class F>
std::vector<double> time_us(cudaStream_t stream, int repetitions, F&& enqueue) {
  const Event begin = taken(make_event());
  const Event end = taken(make_event());
  std::vector<double> out;
  for (int i = 0; i < repetitions + 2; ++i) {
    stop_on(cudaEventRecord(begin.get(), stream));
    enqueue();
    stop_on(cudaEventRecord(end.get(), stream));
    stop_on(cudaEventSynchronize(end.get()));
    float ms = 0;
    stop_on(cudaEventElapsedTime(&ms, begin.get(), end.get()));
    if (i >= 2) out.push_back(1000.0 * static_cast<double>(ms));
  }
  return out;
}

// The best of several orders of reading, each a ring of bulk copies.
double read_gbs(cudaStream_t stream, uint32_t n_ctas) {
  const uint64_t n_slots = 300'000;
  const DeviceMemory memory = taken(DeviceMemory::allocate(n_slots * kSlotBytes, "a buffer"));
  fill_matrix(memory.as<uint16_t>(), memory.size() / 2, 7, TensorType::kBF16, stream);
  double best = 0;
  for (const uint32_t run : {1u, 2u, 4u, 32u, 2272u}) {
    for (const bool evict_first : {false, true}) {
      const double us = median(time_us(stream, 5, [&] {
        stop_on(read_slots({.from = memory.data(),
                            .n_slots = n_slots,
                            .n_ctas = n_ctas,
                            .run = run,
                            .evict_first = evict_first},
                           stream));
      }));
      const double gbs = static_cast<double>(n_slots * kSlotBytes) / us / 1000.0;
      std::printf("  reads of %4u slots in a row%s: %.0f GB/s\n", run,
                  evict_first ? ", evict first" : "", gbs);
      best = std::max(best, gbs);
    }
  }
  return best;
}

std::vector<uint32_t> copy_words(const BenchModel& model, const TokenRunner& runner) {
  std::vector<uint32_t> words(model.schedule().n_words);
  stop_on(cudaMemcpy(words.data(), runner.words(), words.size() * 4, cudaMemcpyDeviceToHost));
  return words;
}
std::vector<float> copy_logits(const BenchModel& model) {
  std::vector<float> logits(model.spec().shape.n_vocab);
  stop_on(cudaMemcpy(logits.data(), model.logits(), logits.size() * 4, cudaMemcpyDeviceToHost));
  return logits;
}

// No byte of layer 0's cache but the token's own changed.
bool cache_untouched(const BenchModel& model, uint32_t position,
                     const std::vector<uint16_t>& cache) {
  const KvLayout& layout = model.layout();
  for (uint32_t h = 0; h < layout.n_kv_heads; ++h) {
    for (uint32_t p = 0; p < layout.capacity; ++p) {
      for (uint32_t d = 0; d < layout.head_dim && p != position; ++d) {
        for (const uint64_t i : {layout.k_index(h, p, d) / 2, layout.v_index(h, p, d) / 2}) {
          const uint16_t want =
              p < position ? kv_bits(0, i, model.spec().kv_type) : uint16_t{0xffff};
          if (cache[i] != want) return false;
        }
      }
    }
  }
  return true;
}

bool check_position(const BenchModel& model, TokenRunner& runner, uint32_t position,
                    cudaStream_t stream) {
  const Schedule& schedule = model.schedule();
  stop_on(model.fill_kv(BenchModel::Fill::kRandom, 0, stream));
  stop_on(model.fill_kv(BenchModel::Fill::kNan, position, stream));
  const Token token{.id = static_cast<int32_t>(position * 7 % model.spec().shape.n_vocab),
                    .position = position};
  std::map<std::string, double> worst;
  const size_t n = schedule.phases.size();
  for (size_t p = 0; p < n; ++p) {
    if (p >= 10 && p + 6 < n) continue;  // the first two layers, the last and the logits
    stop_on(runner.run_phases(token, static_cast<uint32_t>(p + 1), stream));
    stop_on(cudaStreamSynchronize(stream));
    stop_on(runner.check());
    const std::vector<uint32_t> words = copy_words(model, runner);
    const bool last = p + 1 == n;
    const std::vector<float> logits = last ? copy_logits(model) : std::vector<float>();
    const std::string& label = schedule.phases[p].label;
    const std::string kind = label.substr(label.rfind('.') + 1);
    double& w = worst[kind];
    w = std::max(w, compare_phase(model, p, position, words, logits, 96).relative());
    if (schedule.shape_of(schedule.phases[p]).kind == PhaseKind::kAttend) {
      const uint32_t layer = schedule.phases[p].kv->value;
      std::vector<uint16_t> cache(model.layout().layer_bytes() / 2);
      stop_on(cudaMemcpy(cache.data(), model.kv(layer), cache.size() * 2, cudaMemcpyDeviceToHost));
      double& a = worst["append"];
      a = std::max(a, compare_append(model, p, position, words, cache).relative());
      if (layer == 0 && model.layout().capacity <= 1024 &&
          !cache_untouched(model, position, cache)) {
        worst["cache"] = 1.0;
      }
    }
    if (last) {
      int32_t best = 0;
      stop_on(cudaMemcpy(&best, runner.best_token(), 4, cudaMemcpyDeviceToHost));
      const auto top = std::max_element(logits.begin(), logits.end());
      if (best != top - logits.begin()) worst["argmax"] = 1.0;
    }
  }
  std::printf("  position %6u:", position);
  bool right = true;
  for (const auto& [kind, error] : worst) {
    // bf16 rounding of a value may fall the other way: one in a few thousand, by 2^-8.
    const double tolerance = kind == "append" ? 1e-3 : kTolerance;
    const bool bad = !(error <= tolerance);
    std::printf(" %s %.1e%s", kind.c_str(), error, bad ? " WRONG" : "");
    right = right && !bad;
  }
  std::printf("\n");
  return right;
}

bool check_repeats(const BenchModel& model, TokenRunner& runner, uint32_t position, int launches,
                   cudaStream_t stream) {
  const Token token{.id = 17, .position = position};
  stop_on(model.fill_kv(BenchModel::Fill::kRandom, 0, stream));
  std::vector<float> first;
  int different = 0;
  for (int i = 0; i < launches; ++i) {
    stop_on(runner.run(token, stream));
    if (i % 25 != 0 && i + 1 != launches && i > 8) continue;
    stop_on(cudaStreamSynchronize(stream));
    stop_on(runner.check());
    const std::vector<float> logits = copy_logits(model);
    if (first.empty()) first = logits;
    different += std::memcmp(first.data(), logits.data(), logits.size() * 4) != 0 ? 1 : 0;
  }
  std::printf("  %d launches at %u: %s\n", launches, position,
              different == 0 ? "identical" : "DIFFERENT");
  return different == 0;
}

// A token whose embedding never comes: the watchdog must end it and say what was awaited, and the
// next token must be right again.
bool check_watchdog(const BenchModel& model, TokenRunner& runner, cudaStream_t stream) {
  const Token token{.id = 17, .position = 100};
  stop_on(model.fill_kv(BenchModel::Fill::kRandom, 0, stream));
  stop_on(runner.run(token, stream));
  stop_on(cudaStreamSynchronize(stream));
  stop_on(runner.check());
  const std::vector<float> before = copy_logits(model);
  const TokenArgs args = runner.args();
  runner.args().embed.dim = 0;
  runner.args().patience_ns = 20'000'000;
  stop_on(runner.run(token, stream));
  stop_on(cudaStreamSynchronize(stream));
  const Status found = runner.check();
  runner.args().embed = args.embed;
  runner.args().patience_ns = args.patience_ns;
  std::printf("  withheld: %s\n", found ? "NOTHING FOUND" : found.error().message.c_str());
  stop_on(runner.run(token, stream));
  stop_on(cudaStreamSynchronize(stream));
  stop_on(runner.check());
  const std::vector<float> after = copy_logits(model);
  const bool same = std::memcmp(before.data(), after.data(), before.size() * 4) == 0;
  if (!same) std::printf("  AFTER THAT THE NEXT TOKEN IS WRONG\n");
  return !found && same;
}

// A shape with so many layers and, of those that are not run whole, a small vocabulary.
BenchSpec part_of(std::string_view name, uint32_t n_layers, TensorType type, TensorType kv_type) {
  BenchSpec spec = bench_spec(name);
  spec.name += ", " + std::to_string(n_layers) + " layers";
  spec.shape.n_layers = n_layers;
  if (n_layers == 2) spec.shape.n_vocab = 8192;
  spec.type = type;
  spec.kv_type = kv_type;
  return spec;
}

std::vector<BenchSpec> check_specs() {
  constexpr TensorType kF16 = TensorType::kF16;
  constexpr TensorType kBF16 = TensorType::kBF16;
  return {bench_spec("llama-1b"),
          part_of("smollm2-135m", 3, kF16, kF16),
          part_of("llama-8b", 2, kBF16, kBF16),
          part_of("llama-3b", 2, kBF16, kF16),
          part_of("qwen2.5-0.5b", 2, kF16, kBF16),
          part_of("qwen3-0.6b", 2, kF16, kF16)};
}

// Two layers, a few tokens: small enough for compute-sanitizer.
bool run_small(const DeviceFacts& device, cudaStream_t stream) {
  BenchSpec spec = check_specs()[1];
  spec.shape.n_layers = 2;
  spec.shape.n_vocab = 2048;
  const BenchModel model = taken(BenchModel::create(spec, 256, device, stream));
  TokenRunner runner = taken(model.runner({}, stream));
  // An instrumented kernel is slower by orders of magnitude.
  runner.args().patience_ns = 60'000'000'000;
  for (const uint32_t position : {0u, 1u, 100u}) {
    stop_on(runner.run({.id = 5, .position = position}, stream));
    stop_on(cudaStreamSynchronize(stream));
    stop_on(runner.check());
  }
  std::printf("small model: ran\n");
  return true;
}

bool check_all(const DeviceFacts& device, cudaStream_t stream, size_t n_models) {
  std::vector<BenchSpec> specs = check_specs();
  specs.resize(std::min(specs.size(), n_models));
  bool right = !specs.empty();
  for (const BenchSpec& spec : specs) {
    const bool large = spec.shape.n_layers > 3;
    std::printf("%s\n", spec.name.c_str());
    const BenchModel model = taken(BenchModel::create(spec, large ? 33024 : 1024, device, stream));
    TokenRunner runner = taken(model.runner({}, stream));
    std::vector<uint32_t> positions = {0, 1, 31, 32, 63, 64, 65, 255, 256, 1000};
    if (large) positions = {0, 64, 2047, 2048, 32767, 32768, 32769, 33023};
    for (const uint32_t position : positions) {
      right = check_position(model, runner, position, stream) && right;
    }
    right = check_repeats(model, runner, large ? 32768 : 1000, large ? 1000 : 300, stream) && right;
    right = check_watchdog(model, runner, stream) && right;
  }
  std::printf(right ? "ALL RIGHT\n" : "SOMETHING IS WRONG\n");
  return right;
}

// Where a token's time goes, by kind of phase, on one CTA; microseconds, mean over the layers.
void print_budget(const BenchModel& model, TokenRunner& runner, Token token, double token_us,
                  double gbs, cudaStream_t stream) {
  const Schedule& schedule = model.schedule();
  const size_t n = schedule.phases.size();
  const DeviceMemory memory =
      taken(DeviceMemory::zeroed((n + 1) * kStampsPerPhase * sizeof(long long), "stamps"));
  runner.args().stamps = memory.as<long long>();
  for (int i = 0; i < 5; ++i) stop_on(runner.run(token, stream));
  stop_on(cudaStreamSynchronize(stream));
  runner.args().stamps = nullptr;
  std::vector<long long> s((n + 1) * kStampsPerPhase);
  stop_on(cudaMemcpy(s.data(), memory.data(), s.size() * 8, cudaMemcpyDeviceToHost));
  const double us = token_us / static_cast<double>(s[n * kStampsPerPhase] - s[0]);
  const auto between = [&](size_t p, int a, size_t q, int b) {
    return us * static_cast<double>(s[q * kStampsPerPhase + static_cast<size_t>(b)] -
                                    s[p * kStampsPerPhase + static_cast<size_t>(a)]);
  };
  for (size_t kind = 0; kind < 6; ++kind) {
    double wait = 0;
    double work = 0;
    double combine = 0;
    double all = 0;
    double count = 0;
    for (size_t p = kind; p < n; p += 5) {
      if ((kind == 5) != (p + 1 == n) || (kind == 0 && p + 1 == n)) continue;
      const bool attend = schedule.shape_of(schedule.phases[p]).kind == PhaseKind::kAttend;
      wait += between(p, 0, p, 1);
      work += between(p, 1, p, 2);
      if (attend) combine += between(p, 2, p, 3);
      all += between(p, 0, p + 1, 0);
      count += 1;
    }
    const size_t example = kind == 5 ? n - 1 : kind;
    const Shape& shape = schedule.shape_of(schedule.phases[example]);
    double bytes = static_cast<double>(shape.n_blocks) * shape.n_chunks * kSlotBytes;
    if (shape.kind == PhaseKind::kAttend) {
      bytes = static_cast<double>(old_slots(shape, token.position)) * shape.n_kv_heads * kSlotBytes;
    }
    if (count == 0) continue;
    std::printf(
        "    %-10s %7.2f us (floor %6.2f): waits %5.2f, eats %6.2f, combines %5.2f, rest %5.2f\n",
        schedule.phases[example].label.c_str(), all / count, bytes / gbs / 1000.0, wait / count,
        work / count, combine / count, (all - wait - work - combine) / count);
  }
}

constexpr uint32_t kMostOfANumber = 1u << 20;

// From least to most numbers with commas between; ends the program where there is something else.
std::vector<uint32_t> numbers(const std::string& text, size_t least, size_t most) {
  std::vector<uint32_t> out;
  for (const char* at = text.c_str();;) {
    char* end = nullptr;
    const unsigned long n = std::strtoul(at, &end, 10);
    if (end == at || *at < '0' || *at > '9' || n > kMostOfANumber) break;
    out.push_back(static_cast<uint32_t>(n));
    if (*end == 0 && out.size() >= least && out.size() <= most) return out;
    if (*end != ',') break;
    at = end + 1;
  }
  stop_on(fail("expected {} to {} numbers up to {} with commas between, found '{}'", least, most,
               kMostOfANumber, text));
  return out;
}

void time_all(const DeviceFacts& device, cudaStream_t stream, std::span<char*> args) {
  const std::vector<uint32_t> positions = numbers(args[0], 1, 64);
  const uint32_t longest = *std::max_element(positions.begin(), positions.end());
  BenchSpec spec = bench_spec("llama-1b");
  if (const char* keep = std::getenv("GODWIT_BENCH_KEEP_MB"); keep != nullptr) {
    spec.keep_bytes = uint64_t{numbers(keep, 1, 1)[0]} * 1'000'000;
  }
  const BenchModel model = taken(BenchModel::create(spec, longest + 256, device, stream));
  const auto n_ctas = static_cast<uint32_t>(device.n_multiprocessors);
  const double gbs = read_gbs(stream, n_ctas);
  std::printf("read bandwidth %.0f GB/s\n", gbs);
  {
    // What a launch costs by itself: a token that ends with its first phase.
    TokenRunner runner = taken(model.runner({}, stream));
    runner.args().n_phases = 1;
    const uint32_t at = std::min(longest, 2048u);
    const double us = median(time_us(stream, 9, [&] {
      for (int i = 0; i < 16; ++i) stop_on(runner.run({.id = 1234, .position = at}, stream));
    }));
    std::printf("a launch of one phase: %.1f us\n", us / 16);
  }
  for (size_t v = 1; v < args.size(); ++v) {
    const std::vector<uint32_t> t = numbers(args[v], 6, 8);
    const Tuning tuning{.window = t[0],
                        .near_window = t[1],
                        .near_slots = t[2],
                        .half = t[3],
                        .last_window = t[4],
                        .pause_ns = t[5],
                        .evict_first = t.size() > 6 ? t[6] : 1,
                        .keep = t.size() > 7 ? t[7] : 1};
    TokenRunner runner = taken(model.runner(tuning, stream));
    for (const uint32_t position : positions) {
      const Token token{.id = 1234, .position = position};
      constexpr int kBatch = 16;
      const std::vector<double> us = time_us(stream, 9, [&] {
        for (int i = 0; i < kBatch; ++i) stop_on(runner.run(token, stream));
      });
      stop_on(runner.check());
      const program::Traffic traffic =
          traffic_of(model.program(), {.position = position,
                                       .n_rows = 1,
                                       .k_type = model.spec().kv_type,
                                       .v_type = model.spec().kv_type});
      const double floor = static_cast<double>(traffic.total()) / gbs / 1000.0;
      const double mid = median(us) / kBatch;
      std::printf("%-24s %6u: %7.1f us (min %7.1f), floor %6.1f, %5.1f %%\n", args[v], position,
                  mid, *std::min_element(us.begin(), us.end()) / kBatch, floor,
                  100.0 * floor / mid);
      if (v == 1 && (position == 2048 || position == 32768)) {
        print_budget(model, runner, token, mid, gbs, stream);
      }
    }
  }
}

// Whether the words are those at the top of this file.
bool understood(std::string_view what, std::span<char*> args) {
  if (what == "time") return args.size() >= 4;
  if (what == "small") return args.size() == 2;
  return what == "check" && args.size() <= 3;
}

int run(std::span<char*> args) {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  const std::string_view what = args.size() > 1 ? args[1] : "check";
  if (!understood(what, args)) {
    std::fprintf(stderr,
                 "usage: godwit_megakernel_bench check [number of models] | small | time POSITIONS "
                 "WINDOW,NEAR,NEAR_SLOTS,HALF,LAST,PAUSE[,EVICT_FIRST[,KEEP]]...\n");
    return 2;
  }
  const DeviceFacts device = taken(device_facts(0));
  std::printf("%s, %d multiprocessors, %d bytes shared\n", device.name.c_str(),
              device.n_multiprocessors, device.max_shared_bytes);
  const Stream stream = taken(make_stream());
  if (what == "time") {
    time_all(device, stream.get(), args.subspan(2));
    return 0;
  }
  if (what == "small") {
    return run_small(device, stream.get()) ? 0 : 1;
  }
  const size_t n_models = args.size() > 2 ? numbers(args[2], 1, 1)[0] : check_specs().size();
  return check_all(device, stream.get(), n_models) ? 0 : 1;
}

}  // namespace
}  // namespace godwit::cuda::persistent

int main(int argc, char** argv) {
  return godwit::cuda::persistent::run({argv, static_cast<size_t>(argc)});
}
