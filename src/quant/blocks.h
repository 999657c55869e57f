// Every block type Godwit computes with, as one list: the table in formats.cpp and the device code
// are made from it, so that a type added here is there too.
#pragma once

#include "quant/bf16.h"
#include "quant/f16.h"
#include "quant/f32.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"

namespace godwit::quant {

template <class... Blocks>
struct BlockList {};

// In the order of the type ids.
using AllBlocks = BlockList<BlockF32, BlockF16, BlockQ4_0, BlockQ4_1, BlockQ5_0, BlockQ5_1,
                            BlockQ8_0, BlockQ4_K, BlockQ5_K, BlockQ6_K, BlockBF16>;

}  // namespace godwit::quant
