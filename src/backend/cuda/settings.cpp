#include "backend/cuda/settings.h"

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace godwit::cuda {
namespace {

template <class T, size_t n>
Status choose(const char* variable, const std::array<std::pair<std::string_view, T>, n>& words,
              T& out) {
  const char* const value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return {};
  for (const auto& [word, choice] : words) {
    if (word == value) {
      out = choice;
      return {};
    }
  }
  return fail("{} is '{}'; expected {} or {}", variable, value, words[0].first, words[1].first);
}

}  // namespace

Result<CudaSettings> settings_from_environment() {
  using std::pair;
  using std::string_view;
  CudaSettings settings;
  const std::array executors = {pair{string_view("stepwise"), ExecutorChoice::kStepwise},
                                pair{string_view("persistent"), ExecutorChoice::kPersistent}};
  const std::array overlaps = {pair{string_view("none"), Overlap::kNone},
                               pair{string_view("programmatic"), Overlap::kProgrammatic}};
  const std::array captures = {pair{string_view("none"), Capture::kNone},
                               pair{string_view("graph"), Capture::kGraph}};
  if (Status s = choose("GODWIT_CUDA_EXECUTOR", executors, settings.executor); !s) {
    return fail(s.error());
  }
  if (Status s = choose("GODWIT_CUDA_OVERLAP", overlaps, settings.overlap); !s) {
    return fail(s.error());
  }
  if (Status s = choose("GODWIT_CUDA_CAPTURE", captures, settings.capture); !s) {
    return fail(s.error());
  }
  const std::array prefills = {pair{string_view("chunks"), PrefillChoice::kChunks},
                               pair{string_view("rows"), PrefillChoice::kRows}};
  if (Status s = choose("GODWIT_CUDA_PREFILL", prefills, settings.prefill); !s) {
    return fail(s.error());
  }
  return settings;
}

}  // namespace godwit::cuda
