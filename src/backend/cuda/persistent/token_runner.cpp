#include "backend/cuda/persistent/token_runner.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/persistent/layout.h"
#include "backend/cuda/persistent/repack.h"
#include "base/bits.h"

namespace godwit::cuda::persistent {
namespace {

constexpr uint64_t kAlign = 256;

uint64_t packed_bytes(const Shape& shape) { return packed_elements(shape) * sizeof(uint16_t); }

uint64_t bias_bytes(const PhasePlan& plan, const Shape& shape) {
  const bool any = std::any_of(plan.biases.begin(), plan.biases.end(),
                               [](const auto& bias) { return bias.has_value(); });
  return any ? round_up(shape.rows * sizeof(float), kAlign) : 0;
}

std::string_view awaited_name(Awaited awaited) {
  switch (awaited) {
    case Awaited::kCopyLanded:
      return "a copy into the ring";
    case Awaited::kSlotFree:
      return "a free slot of the ring";
    case Awaited::kWindow:
      return "an earlier copy";
    case Awaited::kActivation:
      return "its input";
    case Awaited::kQuery:
      return "q, k or v";
    case Awaited::kPartials:
      return "partial results";
    case Awaited::kBest:
      return "the other best logits";
  }
  return "";
}

}  // namespace

uint64_t PackedWeights::need(const Schedule& schedule) {
  uint64_t bytes = 0;
  for (const PhasePlan& plan : schedule.phases) {
    const Shape& shape = schedule.shape_of(plan);
    if (shape.kind == PhaseKind::kMatvec) bytes += packed_bytes(shape) + bias_bytes(plan, shape);
  }
  return bytes;
}

Result<PackedWeights> PackedWeights::pack(const Schedule& schedule, const WeightSource& source,
                                          cudaStream_t stream) {
  PackedWeights out;
  Result<DeviceMemory> memory = DeviceMemory::zeroed(need(schedule), "repacked weights");
  if (!memory) return fail(std::move(memory).error());
  out.memory_ = std::move(*memory);
  std::byte* at = out.memory_.data();
  for (const PhasePlan& plan : schedule.phases) {
    const Shape& shape = schedule.shape_of(plan);
    Phase phase = plan.phase;
    if (plan.norm) phase.norm = source.vector(*plan.norm);
    if (plan.k_norm) phase.bias = source.vector(*plan.k_norm);
    if (shape.kind == PhaseKind::kMatvec) {
      RepackArgs args{.shape = shape, .sources = {}, .packed = reinterpret_cast<uint16_t*>(at)};
      for (size_t i = 0; i < plan.matrices.size(); ++i) {
        const SourceMatrix m = source.matrix(plan.matrices[i]);
        args.sources[i] = {.data = reinterpret_cast<const uint16_t*>(m.data),
                           .rows = plan.matrices[i].rows,
                           .stride = m.stride};
      }
      if (Status s = status_of(repack(args, stream), "repacking weights"); !s)
        return fail(s.error());
      phase.stream = at;
      at += packed_bytes(shape);
      if (const uint64_t bytes = bias_bytes(plan, shape); bytes != 0) {
        auto* bias = reinterpret_cast<float*>(at);
        phase.bias = bias;
        for (size_t i = 0; i < plan.matrices.size(); ++i) {
          const uint64_t n = plan.matrices[i].rows;
          if (plan.biases[i]) {
            const cudaError_t e =
                cudaMemcpyAsync(bias, source.vector(*plan.biases[i]), n * sizeof(float),
                                cudaMemcpyDeviceToDevice, stream);
            if (Status s = status_of(e, "copying a bias"); !s) return fail(s.error());
          }
          bias += n;
        }
        at += bytes;
      }
    }
    out.phases_.push_back(phase);
  }
  const SourceMatrix table = source.matrix(schedule.embed.table);
  out.embed_ = {.table = table.data,
                .type = table.type,
                .dim = static_cast<uint32_t>(schedule.embed.table.cols),
                .stride = table.stride,
                .scale = schedule.embed.scale,
                .out = schedule.embed.out};
  if (Status s = status_of(cudaStreamSynchronize(stream), "repacking weights"); !s) {
    return fail(s.error());
  }
  return out;
}

Result<TokenRunner> TokenRunner::create(const RunnerSettings& settings, cudaStream_t stream) {
  const Schedule& schedule = settings.schedule;
  std::vector<Phase> phases(settings.weights.phases().begin(), settings.weights.phases().end());
  std::vector<Shape> shapes = schedule.shapes;
  for (size_t i = 0; i < phases.size(); ++i) {
    const PhasePlan& plan = schedule.phases[i];
    if (plan.kv) {
      const KvPlace kv = settings.kv(*plan.kv);
      phases[i].stream = kv.data;
      shapes[phases[i].shape].head_bytes = kv.head_bytes;
    }
    if (plan.rope) phases[i].rope = settings.rope(*plan.rope);
  }

  TokenRunner out;
  out.schedule_ = &schedule;
  out.choice_ = {.weight_type = schedule.weight_type,
                 .kv_type = settings.kv_type,
                 .head_dim = schedule.head_dim,
                 .stage_chunks = schedule.shared.stage_chunks,
                 .n_ctas = schedule.n_ctas};
  const uint64_t word_bytes = uint64_t{kReplicas} * schedule.n_words * sizeof(uint32_t);
  const uint64_t best_bytes = schedule.n_ctas * sizeof(unsigned long long);
  Result<DeviceMemory> words =
      DeviceMemory::allocate(word_bytes + best_bytes + kAlign, "activations");
  if (!words) return fail(std::move(words).error());
  out.words_ = std::move(*words);

  const uint64_t phase_bytes = round_up(phases.size() * sizeof(Phase), kAlign);
  Result<DeviceMemory> table =
      DeviceMemory::allocate(phase_bytes + shapes.size() * sizeof(Shape), "a table of phases");
  if (!table) return fail(std::move(table).error());
  out.table_ = std::move(*table);
  std::byte* const to = out.table_.data();
  cudaError_t e = cudaMemcpyAsync(to, phases.data(), phases.size() * sizeof(Phase),
                                  cudaMemcpyHostToDevice, stream);
  if (e == cudaSuccess) {
    e = cudaMemcpyAsync(to + phase_bytes, shapes.data(), shapes.size() * sizeof(Shape),
                        cudaMemcpyHostToDevice, stream);
  }
  if (e == cudaSuccess) e = cudaStreamSynchronize(stream);
  if (Status s = status_of(e, "uploading a table of phases"); !s) return fail(s.error());

  Result<PinnedMemory> error = PinnedMemory::allocate(sizeof(ErrorRecord), "an error record");
  if (!error) return fail(std::move(error).error());
  out.error_ = std::move(*error);
  *out.error_.as<ErrorRecord>() = {};

  std::byte* const best = out.words_.data() + word_bytes;
  out.args_ = {.phases = reinterpret_cast<const Phase*>(to),
               .shapes = reinterpret_cast<const Shape*>(to + phase_bytes),
               .n_phases = static_cast<uint32_t>(phases.size()),
               .n_shapes = static_cast<uint32_t>(shapes.size()),
               .shared = schedule.shared,
               .tuning = settings.tuning,
               .embed = settings.weights.embed(),
               .words = out.words_.as<uint32_t>(),
               .n_words = schedule.n_words,
               .logits = settings.logits,
               .best = reinterpret_cast<unsigned long long*>(best),
               .best_token = reinterpret_cast<int32_t*>(best + best_bytes),
               .error = out.error_.as<ErrorRecord>()};
  return out;
}

Status TokenRunner::begin_anew(cudaStream_t stream) {
  args_.epoch = 0;
  anew_ = false;
  return status_of(cudaMemsetAsync(words_.data(), 0xff, words_.size(), stream),
                   "setting activations anew");
}

Status TokenRunner::run(Token token, cudaStream_t stream) {
  if (anew_) {
    if (Status s = begin_anew(stream); !s) return s;
  }
  args_.token = token.id;
  args_.position = token.position;
  const cudaError_t e = launch_token(choice_, args_, stream);
  ++args_.epoch;
  if (e != cudaSuccess) anew_ = true;
  return status_of(e, "launching a token");
}

Status TokenRunner::run_phases(Token token, uint32_t n_phases, cudaStream_t stream) {
  const uint32_t all = args_.n_phases;
  args_.n_phases = std::min(n_phases, all);
  anew_ = true;
  Status s = run(token, stream);
  args_.n_phases = all;
  anew_ = n_phases < all;
  return s;
}

Status TokenRunner::check() {
  ErrorRecord& record = *error_.as<ErrorRecord>();
  if (record.set == 0) return {};
  const ErrorRecord found = record;
  record = {};
  anew_ = true;
  const std::string label = found.phase < schedule_->phases.size()
                                ? schedule_->phases[found.phase].label
                                : std::string("the end of the token");
  return fail(
      "cuda: the persistent kernel stopped: at {}, warp {} of block {} waited in vain for {}",
      label, found.warp, found.cta, awaited_name(found.awaited));
}

}  // namespace godwit::cuda::persistent
