#include "backend/cpu/expert_cache.h"

#include <algorithm>

#include "base/bits.h"
#include "base/check.h"
#include "program/access.h"

namespace godwit::cpu {
namespace {

using backend::BackendSettings;
using experts::CacheKind;
using program::Program;

// Calls f(layer, step, matrices) for each step with experts, in the order of the source's layers.
template <class F>
void for_each_layer(const Program& program, const F& f) {
  uint32_t layer = 0;
  program::for_each_step(program, [&](const program::Step& step) {
    const auto matrices = program::expert_matrices(step.operation);
    if (std::ranges::all_of(matrices, [](const auto* m) { return m == nullptr; })) return;
    f(layer++, step, matrices);
  });
}

uint32_t n_used(const program::Step& step) {
  if (const auto* up = std::get_if<program::ExpertGatedUp>(&step.operation)) {
    return up->routing.n_used;
  }
  return std::get<program::ExpertDownAdd>(step.operation).routing.n_used;
}

uint64_t widest_file_expert(const experts::ExpertSource& source) {
  uint64_t widest = 0;
  for (uint32_t layer = 0; layer < source.n_layers(); ++layer) {
    if (source.n_experts(layer) > 0) widest = std::max(widest, source.file_bytes(layer));
  }
  return widest;
}

}  // namespace

bool ExpertCache::is_wanted(const BackendSettings& settings) {
  if (settings.experts == nullptr || settings.expert_cache.kind == CacheKind::kFull) return false;
  return widest_file_expert(*settings.experts) > 0;
}

ExpertCache::Layout ExpertCache::lay_out(const Program& program,
                                         const experts::ExpertSource& source) {
  Layout layout;
  layout.places.resize(program.weights.size());
  layout.sizes.resize(source.n_layers());
  for_each_layer(program, [&](uint32_t layer, const program::Step& step, const auto& matrices) {
    check(layer < source.n_layers(), "experts of another program");
    // A type without a kernel is for those who load everything to refuse.
    const bool runs = std::ranges::all_of(matrices, [](const auto* m) {
      return m == nullptr || find_packing(m->weight.type) != nullptr;
    });
    if (source.n_experts(layer) == 0 || !runs) return;
    uint64_t offset = 0;
    for (size_t part = 0; part < matrices.size(); ++part) {
      if (matrices[part] == nullptr) continue;
      const program::ExpertMatrix& matrix = *matrices[part];
      const Packing* packing = find_packing(matrix.weight.type);
      layout.places[matrix.weight.id] = Place{.layer = layer,
                                              .part = part,
                                              .offset = offset,
                                              .n_rows = matrix.rows(),
                                              .n_cols = matrix.weight.cols,
                                              .packing = packing};
      const uint64_t row = packing->packed_row_bytes(matrix.weight.cols);
      layout.mapped_row_bytes = std::max(layout.mapped_row_bytes, row);
      offset += round_up(matrix.rows() * row, experts::kSlotAlignment);
    }
    layout.sizes[layer] = {.n_experts = source.n_experts(layer), .packed_bytes = offset};
    layout.max_in_use = std::max(layout.max_in_use, n_used(step));
  });
  return layout;
}

std::vector<bool> ExpertCache::cached_weights(const Program& program,
                                              const BackendSettings& settings) {
  std::vector<bool> cached(program.weights.size());
  if (!is_wanted(settings)) return cached;
  const Layout layout = lay_out(program, *settings.experts);
  for (size_t id = 0; id < cached.size(); ++id) cached[id] = layout.places[id].has_value();
  return cached;
}

Result<ExpertCache::Need> ExpertCache::need(const Program& program,
                                            const BackendSettings& settings) {
  if (!is_wanted(settings)) return Need{};
  const Layout layout = lay_out(program, *settings.experts);
  const auto plan = experts::plan_slots(layout.sizes, settings.expert_cache, layout.max_in_use);
  if (!plan) return fail(plan.error());
  if (plan->kind == CacheKind::kMapped) {
    return Need{.slot_bytes = 0,
                .scratch_bytes = settings.n_threads * kMappedRows * layout.mapped_row_bytes};
  }
  const uint32_t n_readers =
      std::clamp(settings.expert_reads.n_read_threads, 1u, experts::kMaxReadThreads);
  return Need{.slot_bytes = plan->bytes,
              .scratch_bytes = n_readers * widest_file_expert(*settings.experts)};
}

Result<std::unique_ptr<ExpertCache>> ExpertCache::create(const Program& program,
                                                         const BackendSettings& settings) {
  auto cache = std::make_unique<ExpertCache>();
  cache->layout_ = lay_out(program, *settings.experts);
  const Layout& layout = cache->layout_;
  auto plan = experts::plan_slots(layout.sizes, settings.expert_cache, layout.max_in_use);
  if (!plan) return fail(std::move(plan).error());

  cache->parts_.resize(layout.sizes.size());
  cache->layer_after_.resize(layout.sizes.size());
  std::optional<uint32_t> gated;  // the layer before, if it waits for its down
  for_each_layer(program, [&](uint32_t layer, const program::Step& step, const auto& matrices) {
    for (const auto* matrix : matrices) {
      if (matrix == nullptr) continue;
      const auto& place = layout.places[matrix->weight.id];
      if (place) cache->parts_[layer].push_back(*place);
    }
    cache->layer_after_[layer] = layer;
    const bool is_down = std::holds_alternative<program::ExpertDownAdd>(step.operation);
    if (is_down && gated && layout.sizes[layer].n_experts == layout.sizes[*gated].n_experts) {
      cache->layer_after_[*gated] = layer;
    }
    gated = is_down ? std::nullopt : std::optional(layer);
  });

  const bool is_mapped = plan->kind == CacheKind::kMapped;
  Result<AlignedBuffer> memory = AlignedBuffer::create(std::max<uint64_t>(plan->bytes, 64), 4096);
  if (!memory) return fail(std::move(memory).error().with("slots of experts"));
  cache->memory_ = *std::move(memory);
  cache->mapped_rows_bytes_ =
      is_mapped ? round_up(kMappedRows * layout.mapped_row_bytes, uint64_t{4096}) : 64;
  Result<AlignedBuffer> rows =
      AlignedBuffer::create(settings.n_threads * cache->mapped_rows_bytes_, 4096);
  if (!rows) return fail(std::move(rows).error().with("rows of mapped experts"));
  cache->mapped_rows_ = *std::move(rows);

  Result<experts::ExpertStore> store = experts::ExpertStore::create(
      *settings.experts, *std::move(plan),
      [raw = cache.get()](const experts::PackRequest& request) { return raw->pack(request); },
      settings.expert_reads);
  if (!store) return fail(std::move(store).error());
  cache->store_ = std::make_unique<experts::ExpertStore>(*std::move(store));
  cache->visit_ = std::make_unique<ExpertVisit>(*cache->store_, cache->memory_.data());
  return cache;
}

Status ExpertCache::pack(const experts::PackRequest& request) {
  std::byte* const slot = memory_.data() + request.slot.offset;
  for (const Place& place : parts_[request.key.layer]) {
    const std::span<const std::byte> file = request.parts[place.part];
    const uint64_t expected = place.n_rows * row_bytes(place.packing->type, place.n_cols);
    if (file.size() != expected) {
      return fail("{} bytes, expected {}", file.size(), expected);
    }
    place.packing->pack(file.data(), place.n_rows, place.n_cols, slot + place.offset);
  }
  return {};
}

std::optional<uint32_t> ExpertCache::layer_of(const program::WeightRef& weight) const {
  const std::optional<Place>& place = layout_.places[weight.id];
  return place ? std::optional(place->layer) : std::nullopt;
}

uint32_t ExpertCache::layer_after(uint32_t layer) const { return layer_after_[layer]; }

const std::byte* ExpertCache::packed(const program::WeightRef& weight,
                                     const VisitedExpert& expert) const {
  return expert.slot == nullptr ? nullptr : expert.slot + layout_.places[weight.id]->offset;
}

const std::byte* ExpertCache::mapped(const program::WeightRef& weight,
                                     const VisitedExpert& expert) const {
  return expert.mapped[layout_.places[weight.id]->part].data();
}

std::span<std::byte> ExpertCache::mapped_rows(size_t thread) {
  return mapped_rows_.bytes().subspan(thread * mapped_rows_bytes_, mapped_rows_bytes_);
}

}  // namespace godwit::cpu
