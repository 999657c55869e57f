// What an executor of Programs offers. Called once per token, never per operation. A backend owns
// the weights in the form it likes and any number of contexts, each the activations and the KV of
// one sequence. KV lies at absolute positions: running a row at a position overwrites what was
// there, and a row sees the positions up to its own, so going back is running from there again.
// Recurrent states have no positions: with these, a run begins where the last one ended, at one of
// its tentative rows (those before it then stay), or at 0.
// A row's result is a function of the tokens up to it: the same bits however rows are grouped into
// calls and however many threads there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "backend/state.h"
#include "base/result.h"
#include "base/tensor_type.h"
#include "experts/route_trace.h"
#include "experts/store.h"
#include "program/program.h"

namespace godwit::backend {

// done / total bytes of a stage ("loading"), from the loading thread.
using Progress = std::function<void(std::string_view stage, uint64_t done, uint64_t total)>;

struct ContextSettings {
  uint64_t n_positions = 0;  // KV capacity
  TensorType k_type = TensorType::kF16;
  TensorType v_type = TensorType::kF16;
  size_t max_rows = 1;        // rows of one run()
  size_t max_logit_rows = 1;  // rows of one run() that want logits
  // Rows of one run() that may be taken back; only where the program has recurrent states does
  // that need anything.
  size_t max_tentative_rows = 0;
};

// Of activations in products with quantised weights, where a backend rounds them (cpu). Sixteen
// keep logits where the double-precision reference has them; eight, as other engines do it, halve
// the multiplications, which prompts are made of, and move them (docs/NUMERICS.md, section 5).
enum class ActivationBits : uint8_t { kEight = 8, kSixteen = 16 };

// When weights are laid out as the kernels read them (cpu): once, into memory of the backend's own,
// or some rows at each use, which leaves them to the file's mapping and takes longer. The same
// bits.
enum class Repack : uint8_t { kAtLoad, kAtUse };

// What every backend is made with; one that has no use for a member ignores it.
struct BackendSettings {
  size_t n_threads = 1;
  ActivationBits activation_bits = ActivationBits::kSixteen;
  bool lock_memory = false;  // keep weights, experts and contexts from being swapped out (cpu)
  Repack repack = Repack::kAtLoad;
  // Where routed experts lie in the files: layer i of the source is the i-th step of all lists
  // that multiplies with experts (ExpertGatedUp, ExpertDownAdd). Null: every weight is loaded.
  // Outlives the backend.
  const experts::ExpertSource* experts = nullptr;
  experts::CachePolicy expert_cache = {};
  experts::StoreOptions expert_reads = {};
  // Chooses experts in place of the routers of Program::main, token by token as they are run: for
  // measurements. Null: the routers choose. Outlives the backend.
  const experts::RouteTrace* route_trace = nullptr;
};

struct MemoryNeed {
  uint64_t weight_bytes = 0;   // resident after load, routed experts included
  uint64_t expert_bytes = 0;   // of them, the routed experts: as the policy says
  uint64_t mapped_bytes = 0;   // beside them: weights that stay in the files' mapping (Repack)
  uint64_t kv_bytes = 0;       // of one context: grows with its positions
  uint64_t state_bytes = 0;    // of one context: recurrent states
  uint64_t scratch_bytes = 0;  // of one context: activations and work areas
};

struct ContextId {
  uint32_t value = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string_view name() const = 0;
  // Empty, or why this step cannot run here.
  [[nodiscard]] virtual Status supports(const program::Step& step) const = 0;
  // What load() and one context will take; callable before load().
  [[nodiscard]] virtual Result<MemoryNeed> memory_need(const program::Program& program,
                                                       const ContextSettings& settings) const = 0;
  // Bytes free where weights and contexts go, if that is not the host's memory.
  [[nodiscard]] virtual std::optional<uint64_t> available_bytes() const { return std::nullopt; }
  // GB/s (10^9) at which that memory can be read, measured now in a fraction of a second; likewise.
  [[nodiscard]] virtual std::optional<double> read_bandwidth_gbps() const { return std::nullopt; }
  // Takes the weights (file layout, indexed like program.weights). Program and spans must outlive
  // the backend, which may go on reading rows from the file.
  [[nodiscard]] virtual Status load(const program::Program& program,
                                    std::span<const std::span<const std::byte>> weights,
                                    const Progress& progress) = 0;
  // Errors: memory, an unsupported KV type.
  [[nodiscard]] virtual Result<ContextId> make_context(const ContextSettings& settings) = 0;
  virtual void release_context(ContextId context) = 0;

  // Runs steps over rows (consecutive positions of one sequence). Preconditions (checked): rows
  // and wanted logits within the context's maxima, positions within its capacity, tokens in the
  // vocabulary. Errors: what is read from files while running could not be read (an expert); then
  // activations, KV at the rows' positions and the fixed part are worthless, and the context goes
  // on from where they do not matter: position 0, an imported state, or, without a fixed part, any.
  [[nodiscard]] virtual Status run(ContextId context, std::span<const program::Row> rows,
                                   program::StepRange steps) = 0;

  // Microseconds that the device took for the steps of the last run, without copies to and from
  // it; nothing where that is not measured.
  [[nodiscard]] virtual std::optional<double> device_us(ContextId) const { return std::nullopt; }

  // Whether ranges of steps are run by what runs whole programs for single rows, so that their
  // activations and times tell of that.
  [[nodiscard]] virtual bool runs_parts_alike(ContextId) const { return true; }

  // Whether a row gives the same bits by itself and in a group that is no whole chunk of a prompt.
  // Where it does not, drafts that are verified in groups could change a text.
  [[nodiscard]] virtual bool runs_groups_alike(ContextId) const { return true; }

  // Activations [rows of the last run, width]; of the logits, [rows that wanted them, n_vocab].
  virtual void read(ContextId context, program::BufferId buffer, std::span<float> out) const = 0;
  // Replaces the same, so that one step can be compared on equal inputs.
  virtual void write(ContextId context, program::BufferId buffer, std::span<const float> in) = 0;
  // Logits of the last run without a copy: [rows that wanted them, n_vocab].
  [[nodiscard]] virtual std::span<const float> logits(ContextId context) const = 0;

  // What export_state() gives of this context (state.h).
  [[nodiscard]] virtual StateShape state_shape(ContextId context) const = 0;
  // Copies what positions of `range` left behind, and the fixed part as it is after them.
  // Preconditions (checked): the range within the capacity, spans as state.h says; for the fixed
  // part, that a run could begin at range.end (at 0 it is zero).
  virtual void export_state(ContextId context, PositionRange range, StateTarget to) const = 0;
  // Puts it back, into this context or another of the same shape: a run that goes on from there
  // gives the bits it would have given. The fixed part belongs to the end of the range; a run that
  // begins at position 0 needs none, it begins from nothing.
  virtual void import_state(ContextId context, PositionRange range, StateSource from) = 0;

  // What the cache of routed experts did since load, by layer of BackendSettings::experts; no
  // layers where there is no cache.
  [[nodiscard]] virtual experts::Statistics expert_statistics() const { return {}; }

  // One line for logs and reports: threads, instruction set, kernels.
  [[nodiscard]] virtual std::string describe() const = 0;
};

}  // namespace godwit::backend
