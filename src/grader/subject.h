// What the grader grades: something that decodes one token of a graded model at a time and whose
// cache can be read and written. A backend, or the twin, which may have a mutant in it so that the
// tests can be seen to fail.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "grader/graded_model.h"
#include "grader/twin.h"

namespace godwit::grader {

class Subject {
 public:
  virtual ~Subject() = default;

  [[nodiscard]] virtual std::string describe() const = 0;
  // The first error that a step met; its logits are then NaN. Empty: none.
  [[nodiscard]] virtual std::string failure() const { return {}; }
  // Positions [begin, ...) in the layout of backend/state.h, bf16.
  virtual void write_cache(uint64_t begin, std::span<const uint16_t> in) = 0;
  virtual void read_cache(uint64_t begin, std::span<uint16_t> out) const = 0;
  virtual void step(TokenId token, uint64_t position, std::span<float> logits) = 0;
  // The same, but stops after n_steps of the Program; then read() tells a buffer. False where the
  // subject knows whole tokens only.
  virtual bool partial_step(TokenId token, uint64_t position, size_t n_steps) = 0;
  virtual void read(program::BufferId buffer, std::span<float> out) const = 0;
  // A step whose logits nobody reads, for timing.
  virtual void timed_step(TokenId token, uint64_t position) = 0;
  // How long the device took for the last step, without copies to and from it; if it is known.
  [[nodiscard]] virtual std::optional<double> device_us() const { return std::nullopt; }
};

// Makes the subject of a model: weights and cached positions are the twin's. `model` and `twin`
// outlive the subject.
class SubjectMaker {
 public:
  virtual ~SubjectMaker() = default;
  [[nodiscard]] virtual Result<std::unique_ptr<Subject>> make(const GradedModel& model, Twin& twin,
                                                              uint64_t capacity) const = 0;
};

// The backend of this name in the registry, with a bf16 cache.
[[nodiscard]] std::unique_ptr<SubjectMaker> make_backend_subjects(std::string name);
// The twin itself, which the subject takes over until it is gone.
[[nodiscard]] std::unique_ptr<SubjectMaker> make_twin_subjects(TwinPrecision precision,
                                                               Mutant mutant);

}  // namespace godwit::grader
