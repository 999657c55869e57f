// A model of the fixtures in which mistakes are planted: in its steps, its weights, or in what
// steps leave behind while a prompt runs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/registry.h"
#include "gguf/file.h"
#include "model/registry.h"
#include "quant/formats.h"
#include "transformers_logits.h"

namespace godwit::testing {

// Positions of a prompt: past the window of gpt_oss and the taps of a convolution.
inline constexpr size_t kPositions = 40;

// A fixture whose steps and weights may be changed before it runs, and whose steps' results may be
// replaced while it does.
class MutantModel {
 public:
  using AfterStep = std::function<void(MutantModel&, const program::Step&)>;

  explicit MutantModel(const std::string& fixture) : expected_(read_expected(fixture + ".logits")) {
    Result<gguf::File> file = gguf::File::open(transformers_fixture(fixture + ".gguf"));
    EXPECT_TRUE(file) << file.error().message;
    file_.emplace(std::move(*file));
    Result<model::Model> model = model::build_model(*file_);
    EXPECT_TRUE(model) << model.error().message;
    model_ = std::move(*model);
  }

  program::Program& program() { return model_.program; }

  template <class Kind, class Change>
  void each(Change change) {
    for (program::Step& step : model_.program.main) {
      if (auto* operation = std::get_if<Kind>(&step.operation)) change(*operation);
    }
  }

  // The bytes of a weight, to be changed; asked for twice, the same copy.
  std::span<std::byte> edit(const program::WeightRef& ref) {
    std::span<const std::byte>& bytes = model_.weights[ref.id];
    copies_.emplace_back(bytes.begin(), bytes.end());
    bytes = copies_.back();
    return copies_.back();
  }

  void change_values(const program::WeightRef& ref, const std::function<float(float)>& change) {
    const std::span<std::byte> bytes = edit(ref);
    for (size_t at = 0; at < bytes.size(); at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, bytes.data() + at, sizeof value);
      value = change(value);
      std::memcpy(bytes.data() + at, &value, sizeof value);
    }
  }

  // Row `i` becomes what row `from(i)` was.
  void permute_rows(const program::WeightRef& ref, const std::function<size_t(size_t)>& from) {
    const std::vector<std::byte> before(model_.weights[ref.id].begin(),
                                        model_.weights[ref.id].end());
    const std::span<std::byte> bytes = edit(ref);
    const size_t row = row_bytes(ref.type, ref.cols);
    for (size_t i = 0; i < ref.rows; ++i) {
      std::memcpy(bytes.data() + i * row, before.data() + from(i) * row, row);
    }
  }

  std::vector<float> weight_row(const program::WeightRef& ref, size_t row) const {
    std::vector<float> values(ref.cols);
    const size_t bytes = row_bytes(ref.type, ref.cols);
    quant::decode_row(ref.type, model_.weights[ref.id].subspan(row * bytes, bytes), values);
    return values;
  }
  std::vector<float> weight(const program::WeightRef& ref) const {
    std::vector<float> all;
    for (size_t r = 0; r < ref.rows; ++r) {
      const std::vector<float> row = weight_row(ref, r);
      all.insert(all.end(), row.begin(), row.end());
    }
    return all;
  }

  // [kPositions, width], of the running prompt.
  std::vector<float> read(program::BufferId buffer) const {
    std::vector<float> values(kPositions * model_.program.buffers[buffer.value].width);
    backend_->read(context_, buffer, values);
    return values;
  }
  void write(program::BufferId buffer, std::span<const float> values) {
    backend_->write(context_, buffer, values);
  }

  // Logits of the prompt's positions, [kPositions, n_vocab].
  std::vector<float> run(std::string_view backend_name, const AfterStep& after) {
    auto backend = backend::make_backend(backend_name, {.n_threads = 2});
    EXPECT_TRUE(backend);
    backend_ = std::move(*backend);
    EXPECT_TRUE(backend_->load(model_.program, model_.weights, {}));
    const auto context = backend_->make_context({.n_positions = kPositions,
                                                 .k_type = TensorType::kF32,
                                                 .v_type = TensorType::kF32,
                                                 .max_rows = kPositions,
                                                 .max_logit_rows = kPositions});
    EXPECT_TRUE(context);
    context_ = *context;
    std::vector<program::Row> rows;
    for (size_t i = 0; i < kPositions; ++i) {
      rows.push_back({.token = {expected_.tokens[i]},
                      .position = {static_cast<int32_t>(i)},
                      .wants_logits = true});
    }
    for (size_t i = 0; i < model_.program.main.size(); ++i) {
      EXPECT_TRUE(backend_->run(context_, rows, {i, i + 1}));
      if (after) after(*this, model_.program.main[i]);
    }
    const std::span<const float> logits = backend_->logits(context_);
    return {logits.begin(), logits.end()};
  }

  // The largest error of any position's logits, as transformers has them.
  double error(std::string_view backend_name, const AfterStep& after) {
    const std::vector<float> logits = run(backend_name, after);
    double worst = 0;
    for (size_t i = 0; i < kPositions; ++i) {
      const auto found = std::span(logits).subspan(i * expected_.n_vocab, expected_.n_vocab);
      worst = std::max(worst, relative_error(found, expected_.after(i)));
    }
    return worst;
  }

 private:
  Expected expected_;
  std::optional<gguf::File> file_;
  model::Model model_;
  std::deque<std::vector<std::byte>> copies_;
  std::unique_ptr<backend::Backend> backend_;
  backend::ContextId context_;
};

}  // namespace godwit::testing
