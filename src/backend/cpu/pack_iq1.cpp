#include "backend/cpu/low_bit_tiles.h"
#include "backend/cpu/pack.h"
#include "backend/cpu/pack_tiles.h"
#include "quant/iq1_m.h"
#include "quant/iq1_s.h"

namespace godwit::cpu {
namespace {

static_assert(quant::kIq1Levels.values[0] == -1 && quant::kIq1Levels.values[2] == 1);

// Four numbers of levels of two bits each, one per byte.
uint32_t spread(unsigned levels) {
  return (levels | levels << 6 | levels << 12 | levels << 18) & 0x03030303u;
}

// The eight levels of entry number `code`, as weights 4 j.. and 4 j + 4.. of what `shift` says.
void add_entry(unsigned code, size_t j, unsigned shift, uint32_t (&dwords)[4]) {
  const unsigned levels = quant::kIq1Codes.codes[code];
  dwords[j] |= spread(levels & 255u) << shift;
  dwords[j + 1] |= spread(levels >> 8) << shift;
}

void put_codes(const uint32_t (&dwords)[4], size_t row, uint8_t (&codes)[4][64]) {
  for (size_t j = 0; j < 4; ++j) put_dword(codes[j], row, dwords[j]);
}

void pack_row_iq1_s(const quant::BlockIQ1_S& block, size_t row, TileIQ1_S& tile) {
  for (size_t c = 0; c < 4; ++c) {
    TileIQ1_S::Chunk& chunk = tile.chunks[c];
    uint32_t dwords[4] = {};
    for (size_t j = 0; j < 8; ++j) {
      const unsigned high = unsigned{block.qh[2 * c + j / 4]} >> (3 * (j % 4)) & 7u;
      const auto shift = static_cast<unsigned>(2 * (j / 2));
      add_entry(block.qs[8 * c + j] | high << 8, 2 * (j % 2), shift, dwords);
    }
    put_codes(dwords, row, chunk.codes);
    chunk.scales[row] =
        static_cast<uint8_t>(block.qh[2 * c] >> 12 | block.qh[2 * c + 1] >> 12 << 4);
  }
  put_half(tile.d, row, block.d);
}

// The three bits of the scale of 16 columns.
unsigned scale_of(const quant::BlockIQ1_M& block, size_t sixteen) {
  return static_cast<unsigned>(block.scales[sixteen / 4]) >> (3 * (sixteen % 4)) & 7u;
}

// The four bits that go with code number `j` of the block.
unsigned high_nibble(const quant::BlockIQ1_M& block, size_t j) {
  return static_cast<unsigned>(block.qh[j / 2]) >> (4 * (j % 2)) & 15u;
}

void pack_row_iq1_m(const quant::BlockIQ1_M& block, size_t row, TileIQ1_M& tile) {
  for (size_t c = 0; c < 4; ++c) {
    TileIQ1_M::Chunk& chunk = tile.chunks[c];
    uint32_t dwords[4] = {};
    for (size_t pair = 0; pair < 2; ++pair) {
      unsigned scales = 0;
      for (size_t half = 0; half < 2; ++half) {
        const size_t sixteen = 8 * half + 2 * c + pair;
        const auto shift = static_cast<unsigned>(2 * pair + 4 * half);
        const unsigned first = high_nibble(block, 2 * sixteen);
        const unsigned last = high_nibble(block, 2 * sixteen + 1);
        add_entry(block.qs[2 * sixteen] | (first & 7u) << 8, 0, shift, dwords);
        add_entry(block.qs[2 * sixteen + 1] | (last & 7u) << 8, 2, shift, dwords);
        scales |= (scale_of(block, sixteen) | (first & 8u)) << (4 * half);
        uint8_t& late = chunk.late[pair][half][row / 8];
        late = static_cast<uint8_t>(late | (last >> 3) << (row % 8));
      }
      chunk.scales[pair][row] = static_cast<uint8_t>(scales);
    }
    put_codes(dwords, row, chunk.codes);
  }
  put_half(tile.d, row, quant::iq1_m_d(block.scales));
}

}  // namespace

void pack_iq1_s(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockIQ1_S, TileIQ1_S, pack_row_iq1_s>(src, n_rows, cols, dst);
}
void pack_iq1_m(const std::byte* src, size_t n_rows, size_t cols, std::byte* dst) {
  pack_tiles<quant::BlockIQ1_M, TileIQ1_M, pack_row_iq1_m>(src, n_rows, cols, dst);
}

}  // namespace godwit::cpu
