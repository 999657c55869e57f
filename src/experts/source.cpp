#include "experts/source.h"

#include <optional>
#include <system_error>
#include <utility>

#include "base/bits.h"
#include "gguf/shard_name.h"

namespace godwit::experts {
namespace {

constexpr uint64_t kMaxExperts = 1u << 20;  // far above any model; keeps counts in 32 bits

Result<std::vector<std::filesystem::path>> shard_paths(const gguf::File& file) {
  if (file.n_shards() == 1) return std::vector{file.path()};
  const std::optional<gguf::ShardName> name = gguf::parse_shard_name(file.path());
  if (!name) return fail("experts: {} is no name of a shard", file.path().string());
  std::vector<std::filesystem::path> paths;
  for (size_t i = 0; i < file.n_shards(); ++i) {
    paths.push_back(name->sibling(static_cast<uint32_t>(i + 1)));
  }
  return paths;
}

Result<std::vector<uint64_t>> file_sizes(std::span<const std::filesystem::path> paths) {
  std::vector<uint64_t> sizes;
  for (const std::filesystem::path& path : paths) {
    std::error_code error;
    sizes.push_back(std::filesystem::file_size(path, error));
    if (error) return fail("experts: cannot examine {}: {}", path.string(), error.message());
  }
  return sizes;
}

// The number of experts that `tensor` holds, once it is known to be whole and inside its file.
Result<uint32_t> count_experts(const gguf::Tensor& tensor, std::span<const uint64_t> sizes) {
  if (tensor.dims.size() != 3) {
    return fail("experts: tensor '{}' has {} dims, expected 3 (cols, rows, experts)", tensor.name,
                tensor.dims.size());
  }
  const uint64_t n = tensor.dims[2];
  if (n == 0 || n > kMaxExperts) {
    return fail("experts: tensor '{}' has {} experts, expected 1 to {}", tensor.name, n,
                kMaxExperts);
  }
  if (tensor.bytes == 0 || tensor.bytes % n != 0) {
    return fail("experts: tensor '{}' has {} bytes, which {} experts cannot share evenly",
                tensor.name, tensor.bytes, n);
  }
  if (tensor.shard >= sizes.size()) {
    return fail("experts: tensor '{}' is in shard {}, but there are {}", tensor.name,
                tensor.shard + 1, sizes.size());
  }
  const std::optional<uint64_t> end = checked_add(tensor.file_offset, tensor.bytes);
  if (!end || *end > sizes[tensor.shard]) {
    return fail("experts: tensor '{}' is {} bytes at {}, but its file has {} bytes", tensor.name,
                tensor.bytes, tensor.file_offset, sizes[tensor.shard]);
  }
  return static_cast<uint32_t>(n);
}

// 0 for a layer without experts.
Result<uint32_t> count_experts(const LayerTensors& layer, std::span<const uint64_t> sizes) {
  uint32_t n_experts = 0;
  for (const gguf::Tensor* tensor : layer.parts) {
    if (tensor == nullptr) continue;
    Result<uint32_t> n = count_experts(*tensor, sizes);
    if (!n) return n;
    if (n_experts != 0 && *n != n_experts) {
      return fail("experts: tensor '{}' has {} experts, another of its layer {}", tensor->name, *n,
                  n_experts);
    }
    n_experts = *n;
  }
  return n_experts;
}

}  // namespace

Result<ExpertSource> ExpertSource::create(const gguf::File& file,
                                          std::span<const LayerTensors> layers) {
  ExpertSource source;
  auto paths = shard_paths(file);
  if (!paths) return fail(std::move(paths.error()));
  const auto sizes = file_sizes(*paths);
  if (!sizes) return fail(sizes.error());
  source.shards_ = *std::move(paths);
  for (const LayerTensors& layer : layers) {
    const Result<uint32_t> n_experts = count_experts(layer, *sizes);
    if (!n_experts) return fail(n_experts.error());
    source.layers_.push_back({.tensors = layer, .n_experts = *n_experts});
  }
  return source;
}

const gguf::Tensor* ExpertSource::tensor(uint32_t layer, Part part) const {
  return layers_[layer].tensors.parts[static_cast<size_t>(part)];
}

Slice ExpertSource::slice(ExpertKey key, Part part) const {
  const gguf::Tensor* const found = tensor(key.layer, part);
  if (found == nullptr) return {};
  const uint64_t bytes = found->bytes / n_experts(key.layer);
  return {.shard = found->shard, .offset = found->file_offset + key.expert * bytes, .bytes = bytes};
}

uint64_t ExpertSource::file_bytes(uint32_t layer) const {
  uint64_t sum = 0;
  for (const Part part : kAllParts) sum += slice({layer, 0}, part).bytes;
  return sum;
}

ExpertBytes ExpertSource::mapped(ExpertKey key) const {
  ExpertBytes bytes;
  for (const Part part : kAllParts) {
    const Slice place = slice(key, part);
    if (place.bytes == 0) continue;
    bytes[static_cast<size_t>(part)] =
        tensor(key.layer, part)->data.subspan(key.expert * place.bytes, place.bytes);
  }
  return bytes;
}

std::string ExpertSource::describe(ExpertKey key, Part part) const {
  const gguf::Tensor* const found = tensor(key.layer, part);
  return fmt::format("tensor '{}' (layer {}, expert {}) of {}", found->name, key.layer, key.expert,
                     shards_[found->shard].string());
}

}  // namespace godwit::experts
