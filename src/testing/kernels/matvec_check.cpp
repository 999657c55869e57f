#include "testing/kernels/matvec_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "testing/kernels/matvec_problem.h"

namespace godwit::testing {
namespace {

using cpu::MatVecKernel;

// Answers among the subnormals are off by more than a share of themselves.
constexpr double kSubnormalSlack = 0x1p-140;

struct Edges {
  std::span<const size_t> rows;
  std::span<const size_t> cols;  // that are whole blocks of the type
  size_t n_tokens;
};

// Around tiles of 16 rows and pairs of them; columns of one block, of an odd number, of many;
// tokens beyond every kernel's largest group.
constexpr size_t kRows[] = {1, 15, 16, 17, 31, 32, 33, 70};
constexpr size_t kBlockCols[] = {32, 64, 96, 128, 256, 288, 512, 768, 2048, 4864};
constexpr size_t kFloatCols[] = {1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 64, 129, 256, 2048};
constexpr size_t kQuickRows[] = {1, 17, 33};
constexpr size_t kQuickBlockCols[] = {32, 128, 256, 768};
constexpr size_t kQuickFloatCols[] = {1, 3, 17, 129};
constexpr size_t kTokens[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16};

Edges edges_of(TensorType type, CheckExtent extent) {
  const bool floats =
      cpu::find_matvec_kernel(type, Isa::kGeneric)->activation == cpu::ActivationKind::kF32;
  if (extent == CheckExtent::kQuick) {
    return {kQuickRows, floats ? std::span<const size_t>(kQuickFloatCols) : kQuickBlockCols, 9};
  }
  return {kRows, floats ? std::span<const size_t>(kFloatCols) : kBlockCols, 17};
}

std::string text(const MatVecShape& s) {
  return fmt::format("{}x{}, {} tokens", s.rows, s.cols, s.n_tokens);
}

struct KernelTallies {
  explicit KernelTallies(const MatVecKernel& row)
      : kernel(&row),
        near_double(std::string(row.name), "double", kMatVecBound),
        bits(std::string(row.name), "bits", 0.0),
        threads(std::string(row.name), "threads", 0.0),
        rows(std::string(row.name), "rows", 0.0) {}

  const MatVecKernel* kernel;
  FindingTally near_double;
  FindingTally bits;
  FindingTally threads;
  FindingTally rows;
};

void compare_with_double(const MatVecProblem& problem, std::span<const float> y,
                         FindingTally& tally) {
  tally.begin_case();
  for (size_t i = 0; i < y.size(); ++i) {
    const MatVecProblem::Answer& answer = problem.answers()[i];
    // As a share of the magnitude, so that the column has one unit.
    const double unit = answer.magnitude + kSubnormalSlack / kMatVecBound;
    tally.add(std::fabs(static_cast<double>(y[i]) - answer.y) / unit, kMatVecBound, [&] {
      return fmt::format("{}: y[{}][{}]", text(problem.shape()), i / problem.shape().rows,
                         i % problem.shape().rows);
    });
  }
}

void compare_rounding(const MatVecProblem& problem, FindingTally& tally) {
  tally.begin_case();
  for (size_t i = 0; i < problem.roundings().size(); ++i) {
    const MatVecProblem::Rounding& r = problem.roundings()[i];
    const double unit = r.magnitude > 0 ? r.magnitude : 1.0;
    tally.add(r.error / unit, r.bound / unit, [&] {
      return fmt::format("{}: y[{}][{}]", text(problem.shape()), i / problem.shape().rows,
                         i % problem.shape().rows);
    });
  }
}

void compare_kernel(const MatVecProblem& problem, std::span<const float> reference,
                    const ThreadCounts& counts, KernelTallies& tallies) {
  const MatVecKernel& kernel = *tallies.kernel;
  const size_t n_tokens = problem.n_plane_tokens();
  const std::vector<float> y = problem.run(kernel, n_tokens);
  const auto place = [&] { return text(problem.shape()); };
  compare_with_double(problem, y, tallies.near_double);
  if (kernel.exactness != cpu::Exactness::kExact) return;
  tallies.bits.begin_case();
  tallies.bits.add_bits(y, reference, place);
  tallies.threads.begin_case();
  counts.for_each([&](ThreadPool& pool) {
    tallies.threads.add_bits(problem.run_on(kernel, pool), y,
                             [&] { return fmt::format("{}, {} threads", place(), pool.size()); });
  });
  tallies.rows.begin_case();
  for (const size_t n : kTokens) {
    if (n >= n_tokens) break;
    tallies.rows.add_bits(problem.run(kernel, n), std::span(y).first(n * problem.shape().rows),
                          [&] { return fmt::format("{}, {} at once", place(), n); });
  }
}

void check_type(TensorType type, std::vector<KernelTallies>& kernels, const MatVecCheck& check,
                const ThreadCounts& counts, const FindingSink& sink) {
  const MatVecKernel& reference = *cpu::find_matvec_kernel(type, Isa::kGeneric);
  FindingTally rounding(std::string(reference.name), "rounding", 0.0);
  const Edges edges = edges_of(type, check.extent);
  for (const size_t cols : edges.cols) {
    if (cols % tensor_geometry(type).block_weights != 0) continue;
    for (const size_t rows : edges.rows) {
      const MatVecProblem problem({type, rows, cols, edges.n_tokens}, rows * 10007 + cols);
      compare_rounding(problem, rounding);
      const std::vector<float> expected = problem.run(reference, problem.n_plane_tokens());
      for (KernelTallies& tallies : kernels) compare_kernel(problem, expected, counts, tallies);
    }
  }
  for (const KernelTallies& tallies : kernels) {
    sink(tallies.near_double.finding());
    if (tallies.kernel->exactness != cpu::Exactness::kExact) continue;
    sink(tallies.bits.finding());
    sink(tallies.threads.finding());
    sink(tallies.rows.finding());
  }
  if (reference.activation != cpu::ActivationKind::kF32) sink(rounding.finding());
}

// Whether every instruction set rounds activations to the same bytes.
void check_roundings(const MatVecCheck& check, const FindingSink& sink) {
  struct Kind {
    std::string_view name;
    TensorType type;  // one that reads it
  };
  for (const Kind& kind : {Kind{"activations by 32", TensorType::kQ8_0},
                           Kind{"activations by 256", TensorType::kQ4_K}}) {
    for (const Isa isa : {Isa::kAvx2, Isa::kAvx512Vnni}) {
      if (isa > check.ceiling) continue;
      FindingTally tally(fmt::format("{} {}", kind.name, isa_name(isa)), "bits", 0.0);
      for (const size_t cols : {256u, 768u, 4864u}) {
        const MatVecProblem problem({kind.type, 1, cols, 17}, cols);
        tally.begin_case();
        if (!problem.rounds_alike(isa)) {
          tally.add(1.0, 0.0, [&] { return text(problem.shape()); });
        }
      }
      sink(tally.finding());
    }
  }
}

}  // namespace

void check_matvec(const MatVecCheck& check, const ThreadCounts& threads, const FindingSink& sink) {
  std::vector<TensorType> types;
  for (const MatVecKernel& kernel : check.kernels) {
    if (std::ranges::find(types, kernel.type) == types.end()) types.push_back(kernel.type);
  }
  check_roundings(check, sink);
  for (const TensorType type : types) {
    std::vector<KernelTallies> kernels;
    for (const MatVecKernel& kernel : check.kernels) {
      if (kernel.type == type && kernel.isa <= check.ceiling) kernels.emplace_back(kernel);
    }
    if (!kernels.empty()) check_type(type, kernels, check, threads, sink);
  }
}

}  // namespace godwit::testing
