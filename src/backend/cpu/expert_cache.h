// The routed experts of a model whose policy (experts/slot_plan.h) is not to have all of them
// packed from the start: memory for the cache's slots and the function that packs an expert into
// one, or, mapped, the file's pages and room to pack a few rows while they are multiplied. What is
// multiplied is packed alike under every policy, so no policy can change a bit.
//
// A layer here is one of backend::BackendSettings::experts: a step with its gate and up, or with
// its down. So each step asks for what it reads itself, and can run alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/expert_visit.h"
#include "backend/cpu/kernel_table.h"
#include "backend/cpu/packed_weights.h"
#include "os/memory.h"
#include "program/program.h"

namespace godwit::cpu {

class ExpertCache {
 public:
  // Whether these settings have a cache at all; without one every weight is packed at load.
  [[nodiscard]] static bool is_wanted(const backend::BackendSettings& settings);
  // Whether the cache has this weight, indexed by id.
  [[nodiscard]] static std::vector<bool> cached_weights(const program::Program& program,
                                                        const backend::BackendSettings& settings);
  struct Need {
    uint64_t slot_bytes = 0;
    uint64_t scratch_bytes = 0;  // of readers, or of threads that pack mapped rows
  };
  // Errors: a budget too small for what one token uses, with the least that is not.
  [[nodiscard]] static Result<Need> need(const program::Program& program,
                                         const backend::BackendSettings& settings);
  // `program` and the source must outlive it. Errors: as need(), memory, files.
  [[nodiscard]] static Result<std::unique_ptr<ExpertCache>> create(
      const program::Program& program, const backend::BackendSettings& settings);

  // The layer of a weight; nullopt: it is not here.
  [[nodiscard]] std::optional<uint32_t> layer_of(const program::WeightRef& weight) const;
  // The layer that is asked for the same experts after this one, or this one.
  [[nodiscard]] uint32_t layer_after(uint32_t layer) const;
  // Where a weight's rows of an expert are: packed, or in file layout.
  [[nodiscard]] const std::byte* packed(const program::WeightRef& weight,
                                        const VisitedExpert& expert) const;
  [[nodiscard]] const std::byte* mapped(const program::WeightRef& weight,
                                        const VisitedExpert& expert) const;

  // Of slots, which mapped experts have none of.
  [[nodiscard]] Status lock() { return memory_.lock(); }

  [[nodiscard]] ExpertVisit& visit() { return *visit_; }
  // For kMappedRows packed rows of any weight here; one per thread.
  [[nodiscard]] std::span<std::byte> mapped_rows(size_t thread);
  [[nodiscard]] experts::Statistics statistics() const { return store_->statistics(); }

 private:
  struct Place {
    uint32_t layer = 0;
    size_t part = 0;      // experts::Part
    uint64_t offset = 0;  // in the slot
    uint64_t n_rows = 0;  // of one expert
    uint64_t n_cols = 0;
    const Packing* packing = nullptr;
  };
  // The places of all weights, and what a slot of each layer takes.
  struct Layout {
    std::vector<std::optional<Place>> places;  // indexed by weight id
    std::vector<experts::LayerSize> sizes;
    uint32_t max_in_use = 0;
    uint64_t mapped_row_bytes = 0;  // of the widest packed row
  };
  [[nodiscard]] static Layout lay_out(const program::Program& program,
                                      const experts::ExpertSource& source);
  [[nodiscard]] Status pack(const experts::PackRequest& request);

  Layout layout_;
  std::vector<std::vector<Place>> parts_;  // of each layer
  std::vector<uint32_t> layer_after_;
  AlignedBuffer memory_;            // slots, 0 bytes when mapped
  AlignedBuffer mapped_rows_;       // of all threads
  uint64_t mapped_rows_bytes_ = 0;  // of one
  std::unique_ptr<experts::ExpertStore> store_;
  std::unique_ptr<ExpertVisit> visit_;
};

}  // namespace godwit::cpu
