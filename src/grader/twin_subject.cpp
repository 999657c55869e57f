#include <vector>

#include "base/check.h"
#include "grader/subject.h"

namespace godwit::grader {
namespace {

class TwinSubject final : public Subject {
 public:
  TwinSubject(const GradedModel& model, Twin& twin, TwinPrecision precision, Mutant mutant)
      : twin_(twin), precision_(precision), mutant_(mutant), unread_(model.shape.n_vocab) {}

  [[nodiscard]] std::string describe() const override {
    return fmt::format("twin, mutant {}", mutant_name(mutant_));
  }
  void write_cache(uint64_t begin, std::span<const uint16_t> in) override {
    twin_.write_cache(begin, in);
  }
  void read_cache(uint64_t begin, std::span<uint16_t> out) const override {
    twin_.read_cache(begin, out);
  }
  void step(TokenId token, uint64_t position, std::span<float> logits) override {
    twin_.step({.token = token, .position = position, .precision = precision_, .mutant = mutant_},
               logits, {});
  }
  void timed_step(TokenId token, uint64_t position) override { step(token, position, unread_); }
  bool partial_step(TokenId, uint64_t, size_t) override { return false; }
  void read(program::BufferId, std::span<float>) const override {
    check(false, "twin: buffers are told by a trace");
  }

 private:
  Twin& twin_;
  TwinPrecision precision_;
  Mutant mutant_;
  std::vector<float> unread_;
};

class TwinSubjects final : public SubjectMaker {
 public:
  TwinSubjects(TwinPrecision precision, Mutant mutant) : precision_(precision), mutant_(mutant) {}

  Result<std::unique_ptr<Subject>> make(const GradedModel& model, Twin& twin,
                                        uint64_t) const override {
    return std::make_unique<TwinSubject>(model, twin, precision_, mutant_);
  }

 private:
  TwinPrecision precision_;
  Mutant mutant_;
};

}  // namespace

std::unique_ptr<SubjectMaker> make_twin_subjects(TwinPrecision precision, Mutant mutant) {
  return std::make_unique<TwinSubjects>(precision, mutant);
}

}  // namespace godwit::grader
