// Which instruction sets this processor and operating system offer, and which Godwit may use:
// GODWIT_ISA=generic|avx2|avx512vnni|avx512bf16 lowers the ceiling (tests run every kernel so).
#pragma once

#include <string_view>

#include "base/result.h"

namespace godwit {

// Ordered: each includes all before it.
enum class Isa { kGeneric, kAvx2, kAvx512Vnni, kAvx512Bf16 };

[[nodiscard]] std::string_view isa_name(Isa isa);
// The best the processor can run.
[[nodiscard]] Isa detected_isa();
// detected_isa(), or what GODWIT_ISA asks for. Errors: an unknown name, or more than is there.
[[nodiscard]] Result<Isa> chosen_isa();
// "AMD EPYC 9B45", from cpuid.
[[nodiscard]] std::string_view processor_name();

}  // namespace godwit
