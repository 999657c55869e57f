#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/registry.h"
#include "grader/subject.h"
#include "os/topology.h"

namespace godwit::grader {
namespace {

// Positions that travel at once between twin and backend.
constexpr uint64_t kChunkPositions = 4096;

class BackendSubject final : public Subject {
 public:
  explicit BackendSubject(const GradedModel& model) : model_(model) {}

  Status start(const std::string& name, Twin& twin, uint64_t capacity) {
    Result<std::unique_ptr<backend::Backend>> made =
        backend::make_backend(name, {.n_threads = available_cores()});
    if (!made) return fail(std::move(made).error());
    backend_ = std::move(*made);
    for (const program::Step& step : model_.program.main) {
      if (Status s = backend_->supports(step); !s) {
        return fail(Error(s.error()).with(fmt::format("step '{}'", step.label)));
      }
    }
    for (uint32_t i = 0; i < model_.tensors.size(); ++i) {
      weights_.push_back(twin.tensor_bytes(i));
      spans_.emplace_back(weights_.back());
    }
    if (Status s = backend_->load(model_.program, spans_, {}); !s) return s;
    Result<backend::ContextId> context = backend_->make_context(
        {.n_positions = capacity, .k_type = TensorType::kBF16, .v_type = TensorType::kBF16});
    if (!context) return fail(std::move(context).error());
    context_ = *context;
    const backend::StateShape shape = backend_->state_shape(context_);
    if (shape.k_type != TensorType::kBF16 || shape.v_type != TensorType::kBF16) {
      return fail("backend '{}' keeps a cache of {} and {} where BF16 was asked for", name,
                  tensor_type_name(shape.k_type), tensor_type_name(shape.v_type));
    }
    copy_cache(twin, capacity);
    return {};
  }

  [[nodiscard]] std::string describe() const override { return backend_->describe(); }

  void write_cache(uint64_t begin, std::span<const uint16_t> in) override {
    backend_->import_state(context_, range(begin, in.size()), {.positions = std::as_bytes(in)});
  }
  void read_cache(uint64_t begin, std::span<uint16_t> out) const override {
    backend_->export_state(context_, range(begin, out.size()),
                           {.positions = std::as_writable_bytes(out)});
  }

  [[nodiscard]] std::string failure() const override { return failure_; }

  void step(TokenId token, uint64_t position, std::span<float> logits) override {
    if (run(token, position, model_.program.main.size())) {
      std::ranges::copy(backend_->logits(context_), logits.begin());
    } else {
      std::ranges::fill(logits, std::nanf(""));
    }
  }
  void timed_step(TokenId token, uint64_t position) override {
    (void)run(token, position, model_.program.main.size());
  }
  bool partial_step(TokenId token, uint64_t position, size_t n_steps) override {
    return backend_->runs_parts_alike(context_) && run(token, position, n_steps);
  }
  [[nodiscard]] std::optional<double> device_us() const override {
    return backend_->device_us(context_);
  }
  void read(program::BufferId buffer, std::span<float> out) const override {
    backend_->read(context_, buffer, out);
  }

 private:
  bool run(TokenId token, uint64_t position, size_t n_steps) {
    const program::Row row{
        .token = token, .position = {static_cast<int32_t>(position)}, .wants_logits = true};
    const Status status = backend_->run(context_, {&row, 1}, {.begin = 0, .end = n_steps});
    if (!status && failure_.empty()) failure_ = status.error().message;
    return status.has_value();
  }

  [[nodiscard]] backend::PositionRange range(uint64_t begin, size_t numbers) const {
    return {.begin = begin, .end = begin + numbers / model_.shape.position_numbers()};
  }

  void copy_cache(const Twin& twin, uint64_t capacity) {
    std::vector<uint16_t> rows(std::min(capacity, kChunkPositions) *
                               model_.shape.position_numbers());
    for (uint64_t begin = 0; begin < capacity; begin += kChunkPositions) {
      const uint64_t n = std::min(kChunkPositions, capacity - begin);
      const std::span<uint16_t> part(rows.data(), n * model_.shape.position_numbers());
      twin.read_cache(begin, part);
      write_cache(begin, part);
    }
  }

  const GradedModel& model_;
  std::vector<std::vector<std::byte>> weights_;
  std::vector<std::span<const std::byte>> spans_;
  std::unique_ptr<backend::Backend> backend_;
  backend::ContextId context_;
  std::string failure_;
};

class BackendSubjects final : public SubjectMaker {
 public:
  explicit BackendSubjects(std::string name) : name_(std::move(name)) {}

  Result<std::unique_ptr<Subject>> make(const GradedModel& model, Twin& twin,
                                        uint64_t capacity) const override {
    auto subject = std::make_unique<BackendSubject>(model);
    if (Status s = subject->start(name_, twin, capacity); !s) return fail(s.error());
    return subject;
  }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<SubjectMaker> make_backend_subjects(std::string name) {
  return std::make_unique<BackendSubjects>(std::move(name));
}

}  // namespace godwit::grader
