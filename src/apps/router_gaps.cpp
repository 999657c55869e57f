#include "apps/router_gaps.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "backend/reference/steps.h"
#include "base/check.h"

namespace godwit::apps {
namespace {

using backend::Backend;
using backend::ContextId;

constexpr size_t kRows = 128;  // of one call

reference::WeightView view_of(const engine::Engine& engine, const program::WeightRef& ref) {
  const program::Weight& weight = engine.program().weights[ref.id];
  const gguf::Tensor* const tensor = engine.file().find_tensor(weight.name);
  check(tensor != nullptr, "a weight of a program is a tensor of its file");
  return {.type = ref.type, .rows = ref.rows, .cols = ref.cols, .bytes = tensor->data};
}

// The gap of each row of x, [n_rows, dim], the input of `route`.
std::vector<double> gaps_of(const engine::Engine& engine, const program::Route& route,
                            std::span<const float> x, size_t n_rows, ThreadPool& pool) {
  const size_t dim = route.weight.cols;
  std::vector<double> norm(dim);
  reference::decode_weight_row(view_of(engine, route.norm.weight), 0, norm);
  reference::Matrix normed{.width = dim, .values = std::vector<double>(x.begin(), x.end())};
  for (size_t t = 0; t < n_rows; ++t) {
    reference::rms_norm(normed.row(t), norm, route.norm.epsilon, normed.row(t));
  }
  reference::Matrix logits{.width = route.weight.rows,
                           .values = std::vector<double>(n_rows * route.weight.rows)};
  const reference::WeightView bias =
      route.bias ? view_of(engine, *route.bias) : reference::WeightView{};
  reference::mat_mul({.weight = view_of(engine, route.weight),
                      .bias = route.bias ? &bias : nullptr,
                      .x = &normed,
                      .n_rows = n_rows},
                     pool, logits);
  std::vector<double> gaps;
  const size_t n_used = route.out.n_used;
  for (size_t t = 0; t < n_rows; ++t) {
    const std::span<double> row = logits.row(t);
    if (n_used >= row.size()) {
      gaps.push_back(std::numeric_limits<double>::infinity());
      continue;
    }
    std::ranges::partial_sort(row, row.begin() + static_cast<std::ptrdiff_t>(n_used) + 1,
                              std::greater<>{});
    gaps.push_back(row[n_used - 1] - row[n_used]);
  }
  return gaps;
}

// Runs all steps for some rows, stopping before each router; lowers `gaps` to what it finds there.
Status run_rows(const engine::Engine& engine, ContextId context, std::span<const program::Row> rows,
                ThreadPool& pool, std::span<double> gaps) {
  Backend& backend = engine.backend();
  const std::vector<program::Step>& steps = engine.program().main;
  size_t done = 0;
  const auto run_to = [&](size_t end) -> Status {
    if (done == end) return {};
    const program::StepRange range{.begin = done, .end = end};
    done = end;
    return backend.run(context, rows, range);
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    const auto* const route = std::get_if<program::Route>(&steps[i].operation);
    if (route == nullptr) continue;
    if (Status s = run_to(i); !s) return s;
    std::vector<float> x(rows.size() * route->weight.cols);
    backend.read(context, route->in, x);
    const std::vector<double> found = gaps_of(engine, *route, x, rows.size(), pool);
    for (size_t t = 0; t < rows.size(); ++t) gaps[t] = std::min(gaps[t], found[t]);
  }
  return run_to(steps.size());
}

}  // namespace

Result<std::vector<double>> router_gaps(const engine::Engine& engine,
                                        std::span<const TokenId> tokens, size_t n_last) {
  check(n_last >= 1 && n_last <= tokens.size(), "gaps of tokens that are there");
  const Result<ContextId> context =
      engine.backend().make_context({.n_positions = tokens.size(),
                                     .k_type = engine.settings().k_type,
                                     .v_type = engine.settings().v_type,
                                     .max_rows = std::min(tokens.size(), kRows)});
  if (!context) return fail(context.error());
  ThreadPool pool(engine.settings().n_threads);
  std::vector<double> gaps(tokens.size(), std::numeric_limits<double>::infinity());
  Status status;
  for (size_t begin = 0; begin < tokens.size() && status; begin += kRows) {
    const size_t n = std::min(kRows, tokens.size() - begin);
    std::vector<program::Row> rows;
    for (size_t i = begin; i < begin + n; ++i) {
      rows.push_back({.token = tokens[i], .position = {static_cast<int32_t>(i)}});
    }
    status = run_rows(engine, *context, rows, pool, std::span(gaps).subspan(begin, n));
  }
  engine.backend().release_context(*context);
  if (!status) return fail(status.error());
  return std::vector<double>(gaps.end() - static_cast<std::ptrdiff_t>(n_last), gaps.end());
}

}  // namespace godwit::apps
