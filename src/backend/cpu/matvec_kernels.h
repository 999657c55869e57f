// The entry points that kernel_table.cpp ties to rows: one per type and instruction set. Each file
// matvec_<family>_<isa>.cpp defines one block of them; its header comment is the contract.
#pragma once

#include "backend/cpu/matvec_args.h"

namespace godwit::cpu {

namespace generic {
void matvec_f32(const MatVecArgs& args);
void matvec_f16(const MatVecArgs& args);
void matvec_bf16(const MatVecArgs& args);
void matvec_q4_0(const MatVecArgs& args);
void matvec_q4_1(const MatVecArgs& args);
void matvec_q5_0(const MatVecArgs& args);
void matvec_q5_1(const MatVecArgs& args);
void matvec_q8_0(const MatVecArgs& args);
void matvec_q4_k(const MatVecArgs& args);
void matvec_q5_k(const MatVecArgs& args);
void matvec_q6_k(const MatVecArgs& args);
void matvec_q2_k(const MatVecArgs& args);
void matvec_q3_k(const MatVecArgs& args);
void matvec_iq4_nl(const MatVecArgs& args);
void matvec_iq4_xs(const MatVecArgs& args);
void matvec_tq2_0(const MatVecArgs& args);  // of TQ1_0 too
void matvec_mxfp4(const MatVecArgs& args);
void matvec_nvfp4(const MatVecArgs& args);
void matvec_q1_0(const MatVecArgs& args);
void matvec_q2_0(const MatVecArgs& args);
void matvec_iq1_s(const MatVecArgs& args);
void matvec_iq1_m(const MatVecArgs& args);
void matvec_iq2_xxs(const MatVecArgs& args);
void matvec_iq2_xs(const MatVecArgs& args);
void matvec_iq2_s(const MatVecArgs& args);
void matvec_iq3_xxs(const MatVecArgs& args);
void matvec_iq3_s(const MatVecArgs& args);
}  // namespace generic

namespace avx2 {
void matvec_f32(const MatVecArgs& args);
void matvec_f16(const MatVecArgs& args);
void matvec_bf16(const MatVecArgs& args);
void matvec_q4_0(const MatVecArgs& args);
void matvec_q4_1(const MatVecArgs& args);
void matvec_q5_0(const MatVecArgs& args);
void matvec_q5_1(const MatVecArgs& args);
void matvec_q8_0(const MatVecArgs& args);
void matvec_q4_k(const MatVecArgs& args);
void matvec_q5_k(const MatVecArgs& args);
void matvec_q6_k(const MatVecArgs& args);
void matvec_q2_k(const MatVecArgs& args);
void matvec_q3_k(const MatVecArgs& args);
void matvec_iq4_nl(const MatVecArgs& args);
void matvec_iq4_xs(const MatVecArgs& args);
void matvec_tq2_0(const MatVecArgs& args);
void matvec_mxfp4(const MatVecArgs& args);
void matvec_nvfp4(const MatVecArgs& args);
void matvec_q1_0(const MatVecArgs& args);
void matvec_q2_0(const MatVecArgs& args);
void matvec_iq1_s(const MatVecArgs& args);
void matvec_iq1_m(const MatVecArgs& args);
void matvec_iq2_xxs(const MatVecArgs& args);
void matvec_iq2_xs(const MatVecArgs& args);
void matvec_iq2_s(const MatVecArgs& args);
void matvec_iq3_xxs(const MatVecArgs& args);
void matvec_iq3_s(const MatVecArgs& args);
}  // namespace avx2

namespace avx512vnni {
void matvec_f32(const MatVecArgs& args);
void matvec_f16(const MatVecArgs& args);
void matvec_bf16(const MatVecArgs& args);
void matvec_q4_0(const MatVecArgs& args);
void matvec_q4_1(const MatVecArgs& args);
void matvec_q5_0(const MatVecArgs& args);
void matvec_q5_1(const MatVecArgs& args);
void matvec_q8_0(const MatVecArgs& args);
void matvec_q4_k(const MatVecArgs& args);
void matvec_q5_k(const MatVecArgs& args);
void matvec_q6_k(const MatVecArgs& args);
void matvec_q2_k(const MatVecArgs& args);
void matvec_q3_k(const MatVecArgs& args);
void matvec_iq4_nl(const MatVecArgs& args);
void matvec_iq4_xs(const MatVecArgs& args);
void matvec_tq2_0(const MatVecArgs& args);
void matvec_mxfp4(const MatVecArgs& args);
void matvec_nvfp4(const MatVecArgs& args);
void matvec_q1_0(const MatVecArgs& args);
void matvec_q2_0(const MatVecArgs& args);
void matvec_iq1_s(const MatVecArgs& args);
void matvec_iq1_m(const MatVecArgs& args);
void matvec_iq2_xxs(const MatVecArgs& args);
void matvec_iq2_xs(const MatVecArgs& args);
void matvec_iq2_s(const MatVecArgs& args);
void matvec_iq3_xxs(const MatVecArgs& args);
void matvec_iq3_s(const MatVecArgs& args);
}  // namespace avx512vnni

}  // namespace godwit::cpu
