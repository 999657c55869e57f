#include "backend/cuda/persistent/bench/model.h"

#include <cmath>
#include <utility>

#include "backend/cuda/persistent/bench/kernels.h"
#include "base/bits.h"

namespace godwit::cuda::persistent {
namespace {

bool is_vector(const program::Weight& w) { return w.rows == 1; }

uint64_t bytes_of(const program::Weight& w) {
  return round_up(w.rows * w.cols * (is_vector(w) ? 4 : 2), 256);
}

}  // namespace

Result<BenchModel> BenchModel::create(const BenchSpec& spec, uint64_t capacity,
                                      const DeviceFacts& device, cudaStream_t stream) {
  BenchModel m;
  m.spec_ = spec;
  m.program_ = std::make_unique<program::Program>(bench_program(spec));
  Result<Schedule> schedule = make_schedule(
      *m.program_, {.n_ctas = static_cast<uint32_t>(device.n_multiprocessors),
                    .shared_bytes = static_cast<uint32_t>(device.max_shared_bytes) - 2048,
                    .keep_bytes = spec.keep_bytes});
  if (!schedule) return fail(std::move(schedule).error());
  m.schedule_ = std::make_unique<Schedule>(std::move(*schedule));
  uint64_t total = 0;
  for (const program::Weight& w : m.program_->weights) {
    m.offsets_.push_back(total);
    total += bytes_of(w);
  }
  Result<DeviceMemory> memory = DeviceMemory::allocate(total, "weights");
  if (!memory) return fail(std::move(memory).error());
  m.matrices_ = std::move(*memory);
  for (size_t i = 0; i < m.offsets_.size(); ++i) {
    const program::Weight& w = m.program_->weights[i];
    std::byte* const to = m.matrices_.data() + m.offsets_[i];
    if (is_vector(w)) {
      fill_vector(reinterpret_cast<float*>(to), w.cols, i, stream);
    } else {
      fill_matrix(reinterpret_cast<uint16_t*>(to), w.rows * w.cols, i, w.type, stream);
    }
  }
  m.layout_ = kv_layout(m.program_->kvs[0], spec.kv_type, spec.kv_type, capacity);
  Result<DeviceMemory> kv =
      DeviceMemory::allocate(m.layout_.layer_bytes() * spec.shape.n_layers, "KV");
  if (!kv) return fail(std::move(kv).error());
  m.kv_ = std::move(*kv);
  if (Status s = m.fill_kv(Fill::kRandom, 0, stream); !s) return fail(s.error());

  const program::Rope& rope = m.program_->ropes[0];
  for (uint64_t p = 0; p < m.layout_.capacity; ++p) {
    for (const double f : rope.frequencies) {
      m.rope_host_.push_back(static_cast<float>(std::cos(static_cast<double>(p) * f)));
      m.rope_host_.push_back(static_cast<float>(std::sin(static_cast<double>(p) * f)));
    }
  }
  const uint64_t rope_bytes = m.rope_host_.size() * sizeof(float);
  Result<DeviceMemory> table = DeviceMemory::allocate(rope_bytes, "RoPE");
  if (!table) return fail(std::move(table).error());
  m.rope_ = std::move(*table);
  (void)cudaMemcpyAsync(m.rope_.data(), m.rope_host_.data(), rope_bytes, cudaMemcpyHostToDevice,
                        stream);
  Result<DeviceMemory> logits = DeviceMemory::zeroed(spec.shape.n_vocab * sizeof(float), "logits");
  if (!logits) return fail(std::move(logits).error());
  m.logits_ = std::move(*logits);

  const WeightSource source{
      .matrix =
          [&](const program::WeightRef& w) {
            return SourceMatrix{m.matrices_.data() + m.offsets_[w.id], w.type, w.rows, w.cols};
          },
      .vector =
          [&](const program::WeightRef& w) {
            return reinterpret_cast<const float*>(m.matrices_.data() + m.offsets_[w.id]);
          }};
  Result<PackedWeights> packed = PackedWeights::pack(*m.schedule_, source, stream);
  if (!packed) return fail(std::move(packed).error());
  m.packed_ = std::make_unique<PackedWeights>(std::move(*packed));
  return m;
}

Status BenchModel::fill_kv(Fill fill, uint64_t from, cudaStream_t stream) const {
  for (uint32_t l = 0; l < spec_.shape.n_layers; ++l) {
    fill_cache(reinterpret_cast<uint16_t*>(kv(l)),
               {.layout = layout_,
                .layer = l,
                .type = spec_.kv_type,
                .from = from,
                .nan = fill == Fill::kNan},
               stream);
  }
  return status_of(cudaGetLastError(), "filling KV");
}

Result<TokenRunner> BenchModel::runner(const Tuning& tuning, cudaStream_t stream) const {
  return TokenRunner::create(
      {.schedule = *schedule_,
       .weights = *packed_,
       .kv_type = spec_.kv_type,
       .kv =
           [this](program::KvRef kv) { return KvPlace{this->kv(kv.value), layout_.head_bytes()}; },
       .rope = [this](program::RopeRef) { return rope_.as<const float>(); },
       .logits = logits_.as<float>(),
       .tuning = tuning},
      stream);
}

}  // namespace godwit::cuda::persistent
