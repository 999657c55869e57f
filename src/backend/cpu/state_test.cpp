// The layout of exported state, number by number, and the way back.
#include "backend/cpu/state.h"

#include <gtest/gtest.h>

#include <cstring>

#include "backend/cpu/attention.h"
#include "backend/kv_rounding.h"
#include "base/random.h"
#include "quant/formats.h"

namespace godwit::cpu {
namespace {

const VectorOps& ops = vector_ops(Isa::kGeneric);

constexpr uint64_t kPositions = 50;

// The numbers of a head as they are laid out, as a file has rows of that type.
std::vector<float> row_at(TensorType type, size_t n, const std::byte*& at) {
  std::vector<float> row(n);
  quant::decode_row(type, {at, row_bytes(type, n)}, row);
  at += row_bytes(type, n);
  return row;
}

program::Program two_layers() {
  program::Program program;
  program.kvs = {{.n_kv_heads = 3, .head_dim = 32}, {.n_kv_heads = 1, .head_dim = 64}};
  program.buffers = {{.name = "x", .width = 16}, {.name = "logits", .width = 16}};
  program.logits = {1};
  program.n_vocab = 16;
  return program;
}

std::unique_ptr<Context> make(const program::Program& program, TensorType k, TensorType v) {
  auto context =
      Context::create(program, {.n_positions = kPositions, .k_type = k, .v_type = v}, {});
  EXPECT_TRUE(context);
  return *std::move(context);
}

void fill(Context& context, uint64_t seed) {
  RandomStream random(seed);
  std::array<float, 64> k;
  std::array<float, 64> v;
  for (const KvCache& cache : context.kvs) {
    for (size_t head = 0; head < cache.n_kv_heads; ++head) {
      for (size_t position = 0; position < kPositions; ++position) {
        for (float& x : k) x = static_cast<float>(random.bell());
        for (float& x : v) x = static_cast<float>(random.bell());
        kv_store(cache, head, position, k.data(), v.data(), Isa::kGeneric);
      }
    }
  }
}

// Compares bytes of positions [begin, end) with what attention would read.
void expect_layout(const Context& context, backend::PositionRange range,
                   std::span<const std::byte> bytes) {
  const std::byte* at = bytes.data();
  for (uint64_t position = range.begin; position < range.end; ++position) {
    for (const KvCache& cache : context.kvs) {
      std::vector<float> k(cache.head_dim);
      std::vector<float> v(cache.head_dim);
      std::vector<std::vector<float>> values;
      for (size_t head = 0; head < cache.n_kv_heads; ++head) {
        kv_read(cache, head, position, k, v);
        values.push_back(v);
        EXPECT_EQ(row_at(cache.k_type, cache.head_dim, at), k) << position;
      }
      for (const std::vector<float>& x : values) {
        EXPECT_EQ(row_at(cache.v_type, cache.head_dim, at), x) << position;
      }
    }
  }
  EXPECT_EQ(at, bytes.data() + bytes.size());
}

TEST(CpuState, IsLaidOutPositionByPositionAndComesBackToTheBit) {
  const program::Program program = two_layers();
  for (const TensorType k_type : backend::kKvTypes) {
    for (const TensorType v_type : {TensorType::kF32, TensorType::kQ8_0, TensorType::kQ4_0}) {
      const auto from = make(program, k_type, v_type);
      const auto to = make(program, k_type, v_type);
      fill(*from, 1);
      const uint64_t position_bytes = state_shape(program, *from).position_bytes;
      for (const backend::PositionRange range :
           {backend::PositionRange{0, kPositions}, {5, 37}, {16, 17}, {49, 50}, {7, 7}}) {
        fill(*to, 2);
        const auto before = make(program, k_type, v_type);
        fill(*before, 2);
        std::vector<std::byte> bytes(range.size() * position_bytes);
        export_state(program, *from, ops, range, {.positions = bytes});
        expect_layout(*from, range, bytes);
        import_state(program, *to, range, {.positions = bytes});
        // Inside the range the one, outside the other.
        std::vector<std::byte> all(kPositions * position_bytes);
        export_state(program, *before, ops, {0, kPositions}, {.positions = all});
        std::copy(bytes.begin(), bytes.end(),
                  all.begin() + static_cast<std::ptrdiff_t>(range.begin * position_bytes));
        expect_layout(*to, {0, kPositions}, all);
      }
    }
  }
}

TEST(CpuStateDeathTest, RefusesRangesBeyondTheContextAndSpansOfAnotherSize) {
  const program::Program program = two_layers();
  const auto context = make(program, TensorType::kF16, TensorType::kF16);
  const uint64_t position_bytes = state_shape(program, *context).position_bytes;
  std::vector<std::byte> bytes(position_bytes * 2);
  EXPECT_DEATH(export_state(program, *context, ops, {49, 51}, {.positions = bytes}), "beyond");
  EXPECT_DEATH(export_state(program, *context, ops, {1, 4}, {.positions = bytes}), "another size");
  EXPECT_DEATH(import_state(program, *context, {0, 2}, {.fixed = bytes}), "another size");
}

}  // namespace
}  // namespace godwit::cpu
