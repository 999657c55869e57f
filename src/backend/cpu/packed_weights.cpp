#include "backend/cpu/packed_weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>

#include "base/bits.h"
#include "program/access.h"

namespace godwit::cpu {
namespace {

using program::Program;

// Between weights, so that each starts on its own page and prefetches of one do not alias another.
constexpr uint64_t kWeightAlignment = 4096;
// Rows that one thread packs at a time.
constexpr uint64_t kPackRows = 16 * kTileRows;

enum class Use : uint8_t { kLookedUp, kVector, kTaps, kMultiplied, kMapped, kCached };

// How the program uses each weight; multiplied wins (a tied embedding is also looked up), unless
// somebody else has it or the file keeps it. Taps of a convolution are turned to [taps, channels].
std::vector<Use> uses_of(const Program& program, const PackedWeights::Placement& placement) {
  std::vector<Use> uses(program.weights.size(), Use::kLookedUp);
  const Use multiplied =
      placement.repack == backend::Repack::kAtUse ? Use::kMapped : Use::kMultiplied;
  program::for_each_step(program, [&](const program::Step& step) {
    if (std::holds_alternative<program::Embed>(step.operation)) return;
    if (const auto* recurrent = std::get_if<program::Recurrent>(&step.operation)) {
      uses[recurrent->conv.id] = Use::kTaps;
    }
    for (const program::WeightRef& ref : program::access_of(step.operation).weights) {
      if (uses[ref.id] == Use::kTaps) continue;
      uses[ref.id] = ref.rows == 1 ? Use::kVector : multiplied;
      if (placement.cached[ref.id]) uses[ref.id] = Use::kCached;
    }
  });
  return uses;
}

uint64_t packed_bytes(const program::Weight& weight, Use use) {
  switch (use) {
    case Use::kLookedUp:
    case Use::kMapped:
    case Use::kCached:
      return 0;
    case Use::kVector:
    case Use::kTaps:
      return round_up(weight.rows * weight.cols * sizeof(float), kWeightAlignment);
    case Use::kMultiplied: {
      const uint64_t rows = round_up(weight.rows, kTileRows);
      return round_up(rows * find_packing(weight.type)->packed_row_bytes(weight.cols),
                      kWeightAlignment);
    }
  }
  return 0;
}

// [rows, cols] f32 of a file to [cols, rows].
void transpose(std::span<const std::byte> file, uint64_t rows, uint64_t cols, float* out) {
  for (uint64_t r = 0; r < rows; ++r) {
    for (uint64_t c = 0; c < cols; ++c) {
      std::memcpy(out + c * rows + r, file.data() + (r * cols + c) * sizeof(float), sizeof(float));
    }
  }
}

PackedWeights::Matrix matrix_of(const program::Weight& weight, Isa isa) {
  const Packing* const packing = find_packing(weight.type);
  return {.packed = nullptr,
          .mapped = nullptr,
          .kernel = find_matvec_kernel(weight.type, isa),
          .packing = packing,
          .packed_row_bytes = packing->packed_row_bytes(weight.cols),
          .file_row_bytes = row_bytes(weight.type, weight.cols)};
}

// `packed` hears from the calling thread how many bytes, about, are done.
void pack_rows(const program::Weight& weight, const PackedWeights::Matrix& matrix,
               std::span<const std::byte> file, ThreadPool& pool, std::byte* out,
               const std::function<void(uint64_t)>& packed) {
  std::atomic<uint64_t> next{0};
  pool.run([&](size_t thread) {
    for (uint64_t r = next.fetch_add(kPackRows); r < weight.rows; r = next.fetch_add(kPackRows)) {
      matrix.packing->pack(file.data() + r * matrix.file_row_bytes,
                           std::min(kPackRows, weight.rows - r), weight.cols,
                           out + r * matrix.packed_row_bytes);
      if (thread == 0) packed(r * matrix.packed_row_bytes);
    }
  });
}

}  // namespace

Result<uint64_t> PackedWeights::need(const Program& program, const Placement& placement) {
  const std::vector<Use> uses = uses_of(program, placement);
  uint64_t sum = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    const program::Weight& weight = program.weights[i];
    if (uses[i] >= Use::kMultiplied && find_packing(weight.type) == nullptr) {
      return fail("cpu: no kernel for '{}' of type {}", weight.name, tensor_type_name(weight.type));
    }
    sum += packed_bytes(weight, uses[i]);
  }
  return sum;
}

uint64_t PackedWeights::expert_bytes(const Program& program, const Placement& placement) {
  if (placement.repack == backend::Repack::kAtUse) return 0;
  uint64_t sum = 0;
  program::for_each_step(program, [&](const program::Step& step) {
    for (const program::ExpertMatrix* matrix : program::expert_matrices(step.operation)) {
      if (matrix == nullptr || placement.cached[matrix->weight.id]) continue;
      sum += packed_bytes(program.weights[matrix->weight.id], Use::kMultiplied);
    }
  });
  return sum;
}

uint64_t PackedWeights::mapped_bytes(const Program& program, const Placement& placement) {
  const std::vector<Use> uses = uses_of(program, placement);
  uint64_t sum = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    const program::Weight& weight = program.weights[i];
    if (uses[i] == Use::kMapped) sum += weight.rows * row_bytes(weight.type, weight.cols);
  }
  return sum;
}

uint64_t PackedWeights::row_area_bytes(const Program& program, const Placement& placement) {
  const std::vector<Use> uses = uses_of(program, placement);
  uint64_t widest = 0;
  for (size_t i = 0; i < uses.size(); ++i) {
    if (uses[i] != Use::kMapped) continue;
    const program::Weight& weight = program.weights[i];
    widest = std::max<uint64_t>(widest, find_packing(weight.type)->packed_row_bytes(weight.cols));
  }
  return round_up(kMappedRows * widest, kWeightAlignment);
}

Status PackedWeights::allocate(const Program& program, const Placement& placement,
                               size_t n_threads) {
  const Result<uint64_t> bytes = need(program, placement);
  if (!bytes) return fail(bytes.error());
  Result<AlignedBuffer> arena = AlignedBuffer::create(std::max<uint64_t>(*bytes, 64), 4096);
  if (!arena) return fail(std::move(arena).error().with("packed weights"));
  arena_ = std::move(*arena);
  row_area_bytes_ = row_area_bytes(program, placement);
  Result<AlignedBuffer> rows =
      AlignedBuffer::create(std::max<uint64_t>(n_threads * row_area_bytes_, 64), 4096);
  if (!rows) return fail(std::move(rows).error().with("rows packed at use"));
  row_areas_ = std::move(*rows);
  return {};
}

Status PackedWeights::pack(const Program& program, const Placement& placement,
                           std::span<const std::span<const std::byte>> files, Isa isa,
                           ThreadPool& pool, const backend::Progress& progress) {
  if (Status s = allocate(program, placement, pool.size()); !s) return s;
  files_.assign(files.begin(), files.end());
  matrices_.assign(program.weights.size(), {});
  vectors_.assign(program.weights.size(), nullptr);

  const std::vector<Use> uses = uses_of(program, placement);
  std::byte* at = arena_.data();
  const auto tell = [&](uint64_t of_weight) {
    if (progress)
      progress("loading", static_cast<uint64_t>(at - arena_.data()) + of_weight, arena_.size());
  };
  for (size_t i = 0; i < uses.size(); ++i) {
    const program::Weight& weight = program.weights[i];
    if (uses[i] == Use::kVector) {
      std::memcpy(at, files[i].data(), weight.cols * sizeof(float));
      vectors_[i] = reinterpret_cast<const float*>(at);
    } else if (uses[i] == Use::kTaps) {
      transpose(files[i], weight.rows, weight.cols, reinterpret_cast<float*>(at));
      vectors_[i] = reinterpret_cast<const float*>(at);
    } else if (uses[i] >= Use::kMultiplied) {
      matrices_[i] = matrix_of(weight, isa);
    }
    if (uses[i] == Use::kMapped) matrices_[i].mapped = files[i].data();
    if (uses[i] == Use::kMultiplied) {
      matrices_[i].packed = at;
      pack_rows(weight, matrices_[i], files[i], pool, at, tell);
    }
    at += packed_bytes(weight, uses[i]);
    tell(0);
  }
  return {};
}

std::span<std::byte> PackedWeights::row_area(size_t thread) {
  return row_areas_.bytes().subspan(thread * row_area_bytes_, row_area_bytes_);
}

std::span<const std::byte> PackedWeights::file_row(const program::WeightRef& ref,
                                                   uint64_t row) const {
  const uint64_t bytes = row_bytes(ref.type, ref.cols);
  return files_[ref.id].subspan(row * bytes, bytes);
}

}  // namespace godwit::cpu
