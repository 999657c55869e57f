// Where the routed experts of a model lie in its files: expert e of layer l is up to three slices,
// one of each 3-D tensor [cols, rows, n_experts] of that layer. Types may differ between tensors
// and between layers, and tensors may lie in different shards. Knows no architecture: the caller
// names the tensors. Points into the gguf::File it was made from, which must outlive it.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/tensor_type.h"
#include "gguf/file.h"

namespace godwit::experts {

struct ExpertKey {
  uint32_t layer = 0;
  uint32_t expert = 0;

  friend constexpr auto operator<=>(const ExpertKey&, const ExpertKey&) = default;
};

// The place of a tensor in LayerTensors and ExpertBytes.
enum class Part : uint8_t { kGate, kUp, kDown };
inline constexpr size_t kParts = 3;
inline constexpr std::array<Part, kParts> kAllParts = {Part::kGate, Part::kUp, Part::kDown};

// The tensors of one layer's experts. nullptr: the model has no such tensor (gate and up fused into
// one stand at kGate). All nullptr: a dense layer, without experts.
struct LayerTensors {
  std::array<const gguf::Tensor*, kParts> parts{};
};

// The bytes of one expert as they stand in the file; empty where the layer has no such tensor.
using ExpertBytes = std::array<std::span<const std::byte>, kParts>;

struct Slice {
  uint32_t shard = 0;
  uint64_t offset = 0;  // from the start of the shard
  uint64_t bytes = 0;   // 0: no such tensor
};

class ExpertSource {
 public:
  // layers[l] are the tensors of layer l, pointers into file.tensors(). Errors: a tensor without
  // three dims, tensors of one layer that disagree on the number of experts, a slice that is not
  // whole or lies outside its file as it is now.
  [[nodiscard]] static Result<ExpertSource> create(const gguf::File& file,
                                                   std::span<const LayerTensors> layers);

  [[nodiscard]] uint32_t n_layers() const { return static_cast<uint32_t>(layers_.size()); }
  [[nodiscard]] uint32_t n_experts(uint32_t layer) const { return layers_[layer].n_experts; }
  [[nodiscard]] bool has(ExpertKey key) const {
    return key.layer < n_layers() && key.expert < n_experts(key.layer);
  }
  // The tensor itself (type, dims), or nullptr.
  [[nodiscard]] const gguf::Tensor* tensor(uint32_t layer, Part part) const;
  [[nodiscard]] Slice slice(ExpertKey key, Part part) const;
  // Bytes of one expert of this layer in the file: the sum of its slices.
  [[nodiscard]] uint64_t file_bytes(uint32_t layer) const;
  // Its bytes in the file's mapping.
  [[nodiscard]] ExpertBytes mapped(ExpertKey key) const;
  [[nodiscard]] std::span<const std::filesystem::path> shards() const { return shards_; }
  // "tensor 'blk.3.ffn_up_exps.weight' (layer 3, expert 17) of dir/model.gguf", for messages.
  [[nodiscard]] std::string describe(ExpertKey key, Part part) const;

 private:
  struct Layer {
    LayerTensors tensors;
    uint32_t n_experts = 0;
  };
  std::vector<Layer> layers_;
  std::vector<std::filesystem::path> shards_;
};

}  // namespace godwit::experts
