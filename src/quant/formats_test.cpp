#include "quant/formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "quant/k_scales.h"
#include "testing/source_dir.h"

namespace godwit::quant {
namespace {

// tests/fixtures/quant/<type>.bin; the layout is documented in tools/make_quant_fixture.py.
struct Fixture {
  uint32_t type = 0;
  uint32_t n_blocks = 0;
  uint32_t block_bytes = 0;
  uint32_t block_weights = 0;
  std::vector<std::byte> blocks;
  std::vector<float> weights;
};

Fixture read_fixture(TensorType type) {
  std::string name(tensor_type_name(type));
  std::ranges::transform(name, name.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  const std::filesystem::path path =
      testing::source_dir() / "tests/fixtures/quant" / (name + ".bin");
  std::ifstream file(path, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(file), {}};
  Fixture fixture;
  if (content.size() < 24 || content.substr(0, 8) != "gwquant1") {
    ADD_FAILURE() << "not a fixture: " << path;
    return fixture;
  }
  std::memcpy(&fixture.type, content.data() + 8, 16);
  const size_t blocks_bytes = size_t{fixture.n_blocks} * fixture.block_bytes;
  const size_t n_weights = size_t{fixture.n_blocks} * fixture.block_weights;
  if (content.size() != 24 + blocks_bytes + n_weights * sizeof(float)) {
    ADD_FAILURE() << "wrong size: " << path;
    return Fixture{};
  }
  fixture.blocks.resize(blocks_bytes);
  fixture.weights.resize(n_weights);
  std::memcpy(fixture.blocks.data(), content.data() + 24, blocks_bytes);
  std::memcpy(fixture.weights.data(), content.data() + 24 + blocks_bytes,
              n_weights * sizeof(float));
  return fixture;
}

// Index of the first weight whose bits differ (so that -0 and 0 do, but any NaN is the same), or n.
size_t first_difference(const float* a, const float* b, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!both_nan && std::memcmp(a + i, b + i, sizeof(float)) != 0) return i;
  }
  return n;
}

class EveryFormat : public ::testing::TestWithParam<Format> {};

TEST_P(EveryFormat, DecodesTheFixtureBitForBit) {
  const Fixture fixture = read_fixture(GetParam().type);
  ASSERT_EQ(fixture.type, static_cast<uint32_t>(GetParam().type));
  ASSERT_EQ(fixture.block_bytes, tensor_geometry(GetParam().type).block_bytes);
  ASSERT_EQ(fixture.block_weights, tensor_geometry(GetParam().type).block_weights);
  ASSERT_GT(fixture.n_blocks, 0u);
  std::vector<float> found(fixture.weights.size());
  GetParam().decode(fixture.blocks.data(), fixture.n_blocks, found.data());
  const size_t at = first_difference(found.data(), fixture.weights.data(), found.size());
  ASSERT_EQ(at, found.size()) << "weight " << at << " of block " << at / fixture.block_weights
                              << ": expected " << fixture.weights[at] << ", found " << found[at];
}

TEST_P(EveryFormat, DecodesRowsAtAnyAddress) {
  const Fixture fixture = read_fixture(GetParam().type);
  for (size_t shift = 0; shift < 4; ++shift) {
    // Exactly sized, so that a read past the row is one past the allocation.
    std::vector<std::byte> moved(shift + fixture.blocks.size());
    std::ranges::copy(fixture.blocks, moved.begin() + static_cast<std::ptrdiff_t>(shift));
    std::vector<float> found(fixture.weights.size());
    decode_row(GetParam().type, std::span(moved).subspan(shift), found);
    ASSERT_EQ(first_difference(found.data(), fixture.weights.data(), found.size()), found.size())
        << "shift " << shift;
  }
}

TEST_P(EveryFormat, DecodesAnyBitsWithoutUndefinedBehaviour) {
  const TensorGeometry& geometry = tensor_geometry(GetParam().type);
  RandomStream random(7);
  std::vector<std::byte> blocks(64 * size_t{geometry.block_bytes});
  std::ranges::generate(blocks, [&] { return static_cast<std::byte>(random.below(256)); });
  constexpr float kUnwritten = 1234.5678f;
  std::vector<float> out(64 * size_t{geometry.block_weights}, kUnwritten);
  decode_row(GetParam().type, blocks, out);
  EXPECT_EQ(std::ranges::count(out, kUnwritten), 0);
}

TEST_P(EveryFormat, DecodesAnEmptyRow) { decode_row(GetParam().type, {}, {}); }

TEST_P(EveryFormat, RandomBlocksHaveTheDeviationAskedForAndMeanZero) {
  const TensorGeometry& geometry = tensor_geometry(GetParam().type);
  constexpr size_t kWeights = 1 << 18;
  for (const float deviation : {0.01f, 0.5f}) {
    SCOPED_TRACE(deviation);
    RandomStream random(11);
    std::vector<std::byte> block(geometry.block_bytes);
    std::vector<float> weights(geometry.block_weights);
    double sum = 0;
    double squares = 0;
    for (size_t i = 0; i < kWeights; i += geometry.block_weights) {
      GetParam().random_block(random, deviation, block.data());
      GetParam().decode(block.data(), 1, weights.data());
      for (const float w : weights) {
        sum += static_cast<double>(w);
        squares += static_cast<double>(w) * static_cast<double>(w);
      }
    }
    // Weights of a block share its scale, so the deviation is only known to a per cent or so.
    EXPECT_NEAR(sum / kWeights / static_cast<double>(deviation), 0.0, 0.01);
    EXPECT_NEAR(std::sqrt(squares / kWeights) / static_cast<double>(deviation), 1.0, 0.02);
  }
}

TEST_P(EveryFormat, RandomBlocksAreAFunctionOfTheSeed) {
  const size_t bytes = tensor_geometry(GetParam().type).block_bytes;
  const auto blocks = [&](uint64_t seed) {
    RandomStream random(seed);
    std::vector<std::byte> out(8 * bytes);
    for (size_t i = 0; i < 8; ++i) GetParam().random_block(random, 1.0f, out.data() + i * bytes);
    return out;
  };
  EXPECT_EQ(blocks(1), blocks(1));
  EXPECT_NE(blocks(1), blocks(2));
}

// So that a kernel that confuses two fields, or leaves one out, is found out.
TEST_P(EveryFormat, RandomBlocksVaryInEveryBitButThoseOfScales) {
  const size_t bytes = tensor_geometry(GetParam().type).block_bytes;
  std::vector<std::byte> ever_set(bytes, std::byte{0});
  std::vector<std::byte> always_set(bytes, std::byte{0xff});
  std::vector<std::byte> block(bytes);
  RandomStream random(13);
  for (int round = 0; round < 1000; ++round) {
    GetParam().random_block(random, 0.06f, block.data());
    for (size_t i = 0; i < bytes; ++i) {
      ever_set[i] |= block[i];
      always_set[i] &= block[i];
    }
  }
  int n_constant = 0;
  for (size_t i = 0; i < bytes; ++i) {
    n_constant += 8 - std::popcount(static_cast<uint8_t>(ever_set[i] & ~always_set[i]));
  }
  // Two binary16 scales have up to eight constant bits each, four 8-bit ones seven each.
  EXPECT_LE(n_constant, GetParam().type == TensorType::kNVFP4 ? 28 : 16);
}

INSTANTIATE_TEST_SUITE_P(Table, EveryFormat,
                         ::testing::ValuesIn(formats().begin(), formats().end()),
                         [](const ::testing::TestParamInfo<Format>& format) {
                           return std::string(tensor_type_name(format.param.type));
                         });

TEST(Formats, AreOrderedByIdAndFoundByType) {
  ASSERT_FALSE(formats().empty());
  for (size_t i = 1; i < formats().size(); ++i) {
    EXPECT_LT(formats()[i - 1].type, formats()[i].type);
  }
  for (const TensorGeometry& geometry : kTensorGeometries) {
    const auto row = std::ranges::find(formats(), geometry.type, &Format::type);
    const Format* found = find_format(geometry.type);
    if (row == formats().end()) {
      EXPECT_EQ(found, nullptr) << geometry.name;
    } else {
      EXPECT_EQ(found, &*row) << geometry.name;
    }
  }
}

TEST(Formats, DecodingATypeWithoutAFormatIsAProgrammersError) {
  EXPECT_DEATH(decode_row(TensorType::kI8, {}, {}), "no format");
}

TEST(Formats, DecodingFewerBytesThanTheRowHasIsAProgrammersError) {
  const std::vector<std::byte> src(17);
  std::vector<float> out(32);
  EXPECT_DEATH(decode_row(TensorType::kQ4_0, src, out), "fewer bytes");
}

TEST(KScales, UnpackWhatWasPacked) {
  RandomStream random(3);
  for (int round = 0; round < 1000; ++round) {
    KScaleMin groups[kKGroups];
    for (KScaleMin& group : groups) {
      group = {static_cast<uint8_t>(random.below(64)), static_cast<uint8_t>(random.below(64))};
    }
    uint8_t packed[kKScaleBytes];
    pack_k_scales(groups, packed);
    for (int i = 0; i < kKGroups; ++i) {
      ASSERT_EQ(unpack_k_scale(packed, i).scale, groups[i].scale) << i;
      ASSERT_EQ(unpack_k_scale(packed, i).min, groups[i].min) << i;
    }
  }
}

}  // namespace
}  // namespace godwit::quant
