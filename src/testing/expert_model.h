// A small model file with experts, for tests: random bytes, any mixture of types,
// one file or one shard per layer; and memory for slots with a packer that copies. Not used by the
// program.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "experts/source.h"
#include "experts/store.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "testing/temporary_folder.h"

namespace godwit::testing {

struct ExpertLayer {
  uint32_t n_experts = 0;
  std::array<TensorType, experts::kParts> types{};  // gate, up, down
};

enum class ExpertShards : uint8_t { kOneFile, kOnePerLayer };

class ExpertModel {
 public:
  ExpertModel(std::vector<ExpertLayer> layers, ExpertShards shards) : layers_(std::move(layers)) {
    const size_t n_files = shards == ExpertShards::kOneFile ? 1 : layers_.size();
    for (size_t i = 0; i < n_files; ++i) write_file(i, n_files);
    auto opened = gguf::File::open(path(0, n_files));
    EXPECT_TRUE(opened.has_value()) << (opened ? "" : opened.error().message);
    file_ = std::make_unique<gguf::File>(*std::move(opened));
    auto source = experts::ExpertSource::create(*file_, tensors());
    EXPECT_TRUE(source.has_value()) << (source ? "" : source.error().message);
    source_ = std::make_unique<experts::ExpertSource>(*std::move(source));
  }

  [[nodiscard]] const experts::ExpertSource& source() const { return *source_; }
  [[nodiscard]] const gguf::File& file() const { return *file_; }

  [[nodiscard]] std::vector<experts::LayerTensors> tensors() const {
    std::vector<experts::LayerTensors> found(layers_.size());
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      for (size_t part = 0; part < experts::kParts; ++part) {
        found[layer].parts[part] = file_->find_tensor(name(layer, part));
      }
    }
    return found;
  }

  // The packed form of the tests is the file's bytes, one part after the other.
  [[nodiscard]] std::vector<experts::LayerSize> sizes() const {
    std::vector<experts::LayerSize> all;
    for (uint32_t layer = 0; layer < source_->n_layers(); ++layer) {
      all.push_back({source_->n_experts(layer), source_->file_bytes(layer)});
    }
    return all;
  }

 private:
  static constexpr uint64_t kCols = 256;
  static constexpr uint64_t kRows = 24;

  static std::string name(size_t layer, size_t part) {
    constexpr std::array<const char*, experts::kParts> kNames = {"gate", "up", "down"};
    return fmt::format("blk.{}.ffn_{}_exps.weight", layer, kNames[part]);
  }
  [[nodiscard]] std::filesystem::path path(size_t i, size_t n_files) const {
    if (n_files == 1) return folder_.file("model.gguf");
    return folder_.file(fmt::format("model-{:05}-of-{:05}.gguf", i + 1, n_files));
  }

  void write_file(size_t index, size_t n_files) {
    std::vector<gguf::TensorSpec> specs;
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      if (n_files > 1 && layer != index) continue;
      for (size_t part = 0; part < experts::kParts && layers_[layer].n_experts > 0; ++part) {
        specs.push_back({name(layer, part),
                         layers_[layer].types[part],
                         {kCols, kRows, layers_[layer].n_experts}});
      }
    }
    std::vector<gguf::KeyValue> metadata;
    if (n_files > 1) {
      metadata.push_back(gguf::make_uint("split.no", static_cast<uint32_t>(index)));
      metadata.push_back(gguf::make_uint("split.count", static_cast<uint32_t>(n_files)));
      metadata.push_back(gguf::make_uint("split.tensors.count",
                                         static_cast<uint32_t>(layers_.size() * experts::kParts)));
    }
    auto writer = gguf::Writer::create(path(index, n_files), metadata, specs);
    ASSERT_TRUE(writer.has_value());
    for (const gguf::TensorSpec& spec : specs) {
      std::vector<std::byte> bytes(row_bytes(spec.type, kCols) * kRows * spec.dims[2]);
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(random_.bits());
      ASSERT_TRUE(writer->append(bytes).has_value());
    }
    ASSERT_TRUE(writer->finish().has_value());
  }

  TemporaryFolder folder_;
  std::vector<ExpertLayer> layers_;
  RandomStream random_{7};
  std::unique_ptr<gguf::File> file_;
  std::unique_ptr<experts::ExpertSource> source_;
};

// What a backend lends: memory for the plan's slots.
class ExpertMemory {
 public:
  explicit ExpertMemory(const experts::SlotPlan& plan) : bytes_(plan.bytes) {}

  [[nodiscard]] experts::PackFunction packer() {
    return [this](const experts::PackRequest& request) -> Status {
      std::span<std::byte> slot =
          std::span(bytes_).subspan(request.slot.offset, request.slot.bytes);
      for (const std::span<const std::byte> part : request.parts) {
        if (part.size() > slot.size()) return fail("the slot is too small");
        std::ranges::copy(part, slot.begin());
        slot = slot.subspan(part.size());
      }
      return {};
    };
  }

  // Whether the slot holds exactly this expert.
  [[nodiscard]] bool holds(const experts::Resident& resident,
                           const experts::ExpertBytes& expected) const {
    std::span<const std::byte> slot =
        std::span(bytes_).subspan(resident.slot.offset, resident.slot.bytes);
    for (const std::span<const std::byte> part : expected) {
      if (part.size() > slot.size()) return false;
      if (!std::ranges::equal(slot.first(part.size()), part)) return false;
      slot = slot.subspan(part.size());
    }
    return true;
  }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace godwit::testing
