// Every block type Godwit computes with, as one list: the table in formats.cpp and the device code
// are made from it, so that a type added here is there too.
#pragma once

#include "quant/bf16.h"
#include "quant/f16.h"
#include "quant/f32.h"
#include "quant/iq1_m.h"
#include "quant/iq1_s.h"
#include "quant/iq2_s.h"
#include "quant/iq2_xs.h"
#include "quant/iq2_xxs.h"
#include "quant/iq3_s.h"
#include "quant/iq3_xxs.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/mxfp4.h"
#include "quant/nvfp4.h"
#include "quant/q1_0.h"
#include "quant/q2_0.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"
#include "quant/tq1_0.h"
#include "quant/tq2_0.h"

namespace godwit::quant {

template <class... Blocks>
struct BlockList {};

// In the order of the type ids.
using AllBlocks =
    BlockList<BlockF32, BlockF16, BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1, BlockQ8_0, BlockQ2_K,
              BlockQ3_K, BlockQ4_K, BlockQ5_K, BlockQ6_K, BlockIQ2_XXS, BlockIQ2_XS, BlockIQ3_XXS,
              BlockIQ1_S, BlockIQ4_NL, BlockIQ3_S, BlockIQ2_S, BlockIQ4_XS, BlockIQ1_M, BlockBF16,
              BlockTQ1_0, BlockTQ2_0, BlockMXFP4, BlockNVFP4, BlockQ1_0, BlockQ2_0>;

}  // namespace godwit::quant
