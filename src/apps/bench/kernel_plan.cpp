#include "apps/bench/kernel_plan.h"

#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <optional>

#include "apps/model_options.h"
#include "backend/cpu/attention.h"
#include "backend/cpu/kernel_table.h"
#include "os/memory.h"
#include "os/topology.h"

namespace godwit::apps {
namespace {

constexpr size_t kMaxSide = size_t{1} << 20;
constexpr size_t kMaxTokens = 8192;
constexpr size_t kMaxPositions = size_t{1} << 22;

// Whole numbers from 1 to kMaxSide between the letters x, as many as there is room for.
template <size_t N>
std::optional<std::array<size_t, N>> parse_sides(std::string_view text) {
  std::array<size_t, N> sides{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (size_t i = 0; i < N; ++i) {
    if (i > 0 && (at == end || *at++ != 'x')) return std::nullopt;
    const auto [stop, error] = std::from_chars(at, end, sides[i]);
    if (error != std::errc{} || sides[i] == 0 || sides[i] > kMaxSide) return std::nullopt;
    at = stop;
  }
  if (at != end) return std::nullopt;
  return sides;
}

Result<std::vector<TensorType>> types_of(const std::vector<std::string>& names) {
  std::vector<TensorType> types;
  for (const std::string& name : names) {
    if (name == "all") {
      for (const cpu::MatVecKernel& kernel : cpu::matvec_kernels()) {
        if (kernel.isa == Isa::kGeneric) types.push_back(kernel.type);
      }
      continue;
    }
    const TensorGeometry* const geometry = find_tensor_geometry(name);
    if (geometry == nullptr || cpu::find_packing(geometry->type) == nullptr) {
      return fail("--type '{}': expected all or some of {}", name, matvec_type_names());
    }
    types.push_back(geometry->type);
  }
  return types;
}

Result<std::vector<Isa>> isas_of(const std::vector<std::string>& names) {
  std::vector<Isa> isas;
  for (const std::string& name : names) {
    const Result<Isa> isa = parse_isa(name);
    if (!isa) return fail(isa.error());
    isas.push_back(*isa);
  }
  if (!isas.empty()) return isas;
  const Result<Isa> chosen = chosen_isa();
  if (!chosen) return fail(chosen.error());
  return std::vector{*chosen};
}

Status check_numbers(std::string_view flag, const std::vector<size_t>& numbers, size_t most) {
  for (const size_t n : numbers) {
    if (n == 0 || n > most) return fail("{} {}: expected 1 to {}", flag, n, most);
  }
  return {};
}

double bytes_of(double n_numbers, TensorType type) {
  const TensorGeometry& geometry = tensor_geometry(type);
  return n_numbers * static_cast<double>(geometry.block_bytes) /
         static_cast<double>(geometry.block_weights);
}

// The least that a case takes, in floating point: the products of sides may leave 64 bits.
double least_bytes(const cpu::MatVecCase& c) {
  const auto rows = static_cast<double>(c.rows);
  const auto cols = static_cast<double>(c.cols);
  const auto n = static_cast<double>(c.n_tokens);
  return bytes_of(rows * cols, c.kernel->type) +
         bytes_of(n * (cols + static_cast<double>(c.n_planes) * rows), TensorType::kF32);
}

double least_bytes(const cpu::AttentionCase& c) {
  const auto dim = static_cast<double>(c.head_dim);
  const double kept = static_cast<double>(c.n_positions) * static_cast<double>(c.n_kv_heads) * dim;
  return bytes_of(kept, c.k_type) + bytes_of(kept, c.v_type) +
         bytes_of(2 * static_cast<double>(c.n_heads) * dim, TensorType::kF32);
}

// The system promises more than it has, and ends who takes it at its word.
template <typename Case>
Status check_memory(std::string_view flags, const std::vector<Case>& cases) {
  const auto available = static_cast<double>(available_memory_bytes());
  if (available == 0) return {};
  for (const Case& c : cases) {
    if (const double need = least_bytes(c); need > available) {
      return fail("{}: expected a case within the {:.1f} GiB that are available, found {:.1f} GiB",
                  flags, available / 0x1p30, need / 0x1p30);
    }
  }
  return {};
}

size_t threads_of(const KernelLists& lists) {
  return lists.n_threads != 0 ? lists.n_threads : available_cores();
}

}  // namespace

std::string matvec_type_names() {
  std::vector<std::string> names;
  for (const cpu::MatVecKernel& kernel : cpu::matvec_kernels()) {
    if (kernel.isa == Isa::kGeneric) names.push_back(kv_type_name(kernel.type));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<MatVecShape> parse_matvec_shape(std::string_view text) {
  const auto sides = parse_sides<2>(text);
  if (!sides) {
    return fail("--shape '{}': expected ROWSxCOLS as 8192x2048, sides up to {}", text, kMaxSide);
  }
  return MatVecShape{.rows = (*sides)[0], .cols = (*sides)[1]};
}

Result<AttentionHeads> parse_attention_heads(std::string_view text) {
  const auto sides = parse_sides<3>(text);
  if (!sides || (*sides)[0] % (*sides)[1] != 0) {
    return fail(
        "--heads '{}': expected HEADSxKV_HEADSxDIM as 32x8x64, HEADS a multiple of KV_HEADS", text);
  }
  return AttentionHeads{.n_heads = (*sides)[0], .n_kv_heads = (*sides)[1], .head_dim = (*sides)[2]};
}

Result<KvPair> parse_kv_pair(std::string_view text) {
  const size_t slash = text.find('/');
  const Result<TensorType> k = parse_kv_type(text.substr(0, slash));
  if (!k) return fail(k.error());
  if (slash == std::string_view::npos) return KvPair{.k = *k, .v = *k};
  const Result<TensorType> v = parse_kv_type(text.substr(slash + 1));
  if (!v) return fail(v.error());
  return KvPair{.k = *k, .v = *v};
}

Result<Isa> parse_isa(std::string_view text) {
  for (const Isa isa : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512Vnni, Isa::kAvx512Bf16}) {
    if (isa_name(isa) != text) continue;
    if (isa <= detected_isa()) return isa;
    return fail("--isa {}: this processor has no more than {}", text, isa_name(detected_isa()));
  }
  return fail("--isa '{}': expected generic, avx2, avx512vnni or avx512bf16", text);
}

std::vector<KvPair> kv_pairs() {
  using enum TensorType;
  return {{kF32, kF32},   {kF16, kF16},   {kBF16, kBF16}, {kQ8_0, kQ8_0},
          {kQ4_0, kQ4_0}, {kF16, kQ8_0},  {kF16, kQ4_0},  {kBF16, kQ8_0},
          {kQ8_0, kF16},  {kQ8_0, kQ4_0}, {kQ4_0, kF16},  {kQ4_0, kQ8_0}};
}

Result<std::vector<cpu::MatVecCase>> plan_matvecs(const KernelLists& lists) {
  const Result<std::vector<TensorType>> types = types_of(lists.types);
  if (!types) return fail(types.error());
  const Result<std::vector<Isa>> isas = isas_of(lists.isas);
  if (!isas) return fail(isas.error());
  if (Status s = check_numbers("--tokens", lists.tokens, kMaxTokens); !s) return fail(s.error());
  if (Status s = check_numbers("--planes", lists.planes, 2); !s) return fail(s.error());
  std::vector<cpu::MatVecCase> cases;
  const auto add = [&](const cpu::MatVecKernel& kernel, const MatVecShape& shape, size_t n_tokens) {
    const size_t most = cpu::activation_planes(kernel.activation);
    for (const size_t n : lists.planes.empty() ? std::vector{most} : lists.planes) {
      if (n > most) continue;
      cases.push_back({.kernel = &kernel,
                       .rows = shape.rows,
                       .cols = shape.cols,
                       .n_tokens = n_tokens,
                       .n_planes = n,
                       .n_threads = threads_of(lists),
                       .n_rounds = lists.n_rounds});
    }
  };
  for (const TensorType type : *types) {
    for (const Isa isa : *isas) {
      const cpu::MatVecKernel& kernel = *cpu::find_matvec_kernel(type, isa);
      for (const std::string& text : lists.shapes) {
        const Result<MatVecShape> shape = parse_matvec_shape(text);
        if (!shape) return fail(shape.error());
        for (const size_t n : lists.tokens) add(kernel, *shape, n);
      }
    }
  }
  if (cases.empty()) return fail("nothing to measure: no kernel of these types has --planes 2");
  if (Status s = check_memory("--shape, --tokens", cases); !s) return fail(s.error());
  return cases;
}

Result<std::vector<cpu::AttentionCase>> plan_attention(const KernelLists& lists) {
  const Result<std::vector<Isa>> isas = isas_of(lists.isas);
  if (!isas) return fail(isas.error());
  if (Status s = check_numbers("--positions", lists.positions, kMaxPositions); !s) {
    return fail(s.error());
  }
  std::vector<KvPair> pairs;
  for (const std::string& text : lists.kv_pairs) {
    const Result<KvPair> pair = parse_kv_pair(text);
    if (!pair) return fail(pair.error());
    pairs.push_back(*pair);
  }
  if (pairs.empty()) pairs = kv_pairs();
  std::vector<cpu::AttentionCase> cases;
  for (const std::string& text : lists.heads) {
    const Result<AttentionHeads> heads = parse_attention_heads(text);
    if (!heads) return fail(heads.error());
    for (const KvPair& pair : pairs) {
      for (const Isa isa : *isas) {
        for (const size_t n : lists.positions) {
          cases.push_back({.n_heads = heads->n_heads,
                           .n_kv_heads = heads->n_kv_heads,
                           .head_dim = heads->head_dim,
                           .n_positions = n,
                           .n_tokens = 1,
                           .k_type = pair.k,
                           .v_type = pair.v,
                           .isa = isa,
                           .n_threads = threads_of(lists)});
        }
      }
    }
  }
  if (Status s = check_memory("--heads, --positions", cases); !s) return fail(s.error());
  return cases;
}

}  // namespace godwit::apps
