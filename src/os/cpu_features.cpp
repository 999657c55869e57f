#include "os/cpu_features.h"

#include <cpuid.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

namespace godwit {
namespace {

constexpr std::array kIsas = {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512Vnni, Isa::kAvx512Bf16};

}  // namespace

std::string_view isa_name(Isa isa) {
  switch (isa) {
    case Isa::kGeneric:
      return "generic";
    case Isa::kAvx2:
      return "avx2";
    case Isa::kAvx512Vnni:
      return "avx512vnni";
    case Isa::kAvx512Bf16:
      return "avx512bf16";
  }
  return "?";
}

Isa detected_isa() {
  // __builtin_cpu_supports also asks XGETBV whether the system saves the registers.
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("bmi2") != 0;
  if (!avx2) return Isa::kGeneric;
  const bool vnni =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("avx512vbmi") != 0 &&
      __builtin_cpu_supports("gfni") != 0;
  if (!vnni) return Isa::kAvx2;
  return __builtin_cpu_supports("avx512bf16") != 0 ? Isa::kAvx512Bf16 : Isa::kAvx512Vnni;
}

Result<Isa> chosen_isa() {
  const Isa best = detected_isa();
  const char* wanted = std::getenv("GODWIT_ISA");
  if (wanted == nullptr || *wanted == '\0') return best;
  for (const Isa isa : kIsas) {
    if (isa_name(isa) != wanted) continue;
    if (isa > best) {
      return fail("GODWIT_ISA={} asks for more than this processor has ({})", wanted,
                  isa_name(best));
    }
    return isa;
  }
  return fail("GODWIT_ISA={}: expected generic, avx2, avx512vnni or avx512bf16", wanted);
}

std::string_view processor_name() {
  static const std::string name = [] {
    std::array<unsigned, 12> words{};
    for (unsigned leaf = 0; leaf < 3; ++leaf) {
      unsigned* const w = &words[size_t{4} * leaf];
      if (__get_cpuid(0x80000002u + leaf, &w[0], &w[1], &w[2], &w[3]) == 0) return std::string("?");
    }
    std::array<char, 49> text{};
    std::memcpy(text.data(), words.data(), 48);
    std::string found(text.data());
    while (!found.empty() && found.back() == ' ') found.pop_back();
    return found;
  }();
  return name;
}

}  // namespace godwit
