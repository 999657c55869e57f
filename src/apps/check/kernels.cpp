#include "apps/check/kernels.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/bench/kernel_plan.h"
#include "apps/check/table.h"
#include "apps/command.h"
#include "apps/model_options.h"
#include "backend/cpu/kernel_table.h"
#include "backend/kv_rounding.h"
#include "base/small_letters.h"
#include "testing/kernels/attention_check.h"
#include "testing/kernels/matvec_check.h"

namespace godwit::apps {
namespace {

using testing::CheckExtent;
using testing::Finding;

struct KernelsOptions {
  std::vector<std::string> types;  // as `godwit info` names them, in small letters
  bool quick = false;
  bool as_json = false;
};

// The kernels of the types asked for. Errors: a type without a kernel.
Result<std::vector<cpu::MatVecKernel>> kernels_of(const std::vector<std::string>& types) {
  std::vector<cpu::MatVecKernel> kernels;
  for (const std::string& type : types) {
    const size_t before = kernels.size();
    for (const cpu::MatVecKernel& kernel : cpu::matvec_kernels()) {
      if (kv_type_name(kernel.type) == small_letters(type)) {
        kernels.push_back(kernel);
      }
    }
    if (kernels.size() == before) {
      return fail("check kernels: no kernel for type '{}', only for {}", one_line(type),
                  matvec_type_names());
    }
  }
  if (types.empty()) kernels.assign(cpu::matvec_kernels().begin(), cpu::matvec_kernels().end());
  return kernels;
}

// Both types alike, and two mixed pairs.
std::vector<KvPair> checked_pairs() {
  using enum TensorType;
  std::vector<KvPair> pairs;
  for (const TensorType type : backend::kKvTypes) pairs.push_back({type, type});
  pairs.insert(pairs.end(), {{kF16, kBF16}, {kQ8_0, kF16}, {kQ8_0, kQ4_0}});
  return pairs;
}

Status check_kernels(const KernelsOptions& options) {
  const Result<Isa> ceiling = chosen_isa();
  if (!ceiling) return fail(ceiling.error());
  const auto kernels = kernels_of(options.types);
  if (!kernels) return fail(kernels.error());
  const CheckExtent extent = options.quick ? CheckExtent::kQuick : CheckExtent::kFull;
  const testing::ThreadCounts threads;
  CheckTable table({.name = "kernels", .as_json = options.as_json});
  const testing::FindingSink sink = [&](const Finding& f) {
    table.add({.name = f.subject,
               .check = f.property,
               .n_cases = f.n_cases,
               .error = f.error,
               .bound = f.bound,
               .holds = f.holds(),
               .at = f.at});
  };
  testing::check_matvec({.kernels = *kernels, .ceiling = *ceiling, .extent = extent}, threads,
                        sink);
  if (options.types.empty()) {
    const std::vector<testing::AttentionSubject> subjects = testing::attention_subjects(*ceiling);
    for (const KvPair& pair : checked_pairs()) {
      testing::check_attention(
          {.subjects = subjects, .k_type = pair.k, .v_type = pair.v, .extent = extent}, threads,
          sink);
    }
  }
  return table.finish();
}

}  // namespace

void add_check_kernels_command(CLI::App& app) {
  auto options = std::make_shared<KernelsOptions>();
  CLI::App* command = app.add_subcommand(
      kCheckKernels, "Check the cpu kernels against double precision (also: check kernels)");
  command->add_option("--type", options->types, "Only mat-vecs of this type (q4_k); repeatable");
  command->add_flag("--quick", options->quick, "Fewer shapes and lengths");
  command->add_flag("--json", options->as_json, "One JSON object: check, holds, rows");
  command->footer(
      "One line per kernel and property, at its worst case; docs/NUMERICS.md explains them.\n"
      "GODWIT_ISA lowers the instruction sets that are checked.\n"
      "Example:\n  godwit check kernels\n  godwit check kernels --type q4_k --json");
  command->callback([options] { finish(check_kernels(*options)); });
}

}  // namespace godwit::apps
