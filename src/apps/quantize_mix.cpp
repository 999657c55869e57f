#include "apps/quantize_mix.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <utility>

namespace godwit::apps {
namespace {

constexpr auto kFileTypes = std::to_array<FileType>({
    {"F32", Mix::kF32, TensorType::kF32},          {"F16", Mix::kF16, TensorType::kF16},
    {"BF16", Mix::kBF16, TensorType::kBF16},       {"Q8_0", Mix::kQ8_0, TensorType::kQ8_0},
    {"Q6_K", Mix::kQ6_K, TensorType::kQ6_K},       {"Q5_K_M", Mix::kQ5_K_M, TensorType::kQ5_K},
    {"Q5_K_S", Mix::kQ5_K_S, TensorType::kQ5_K},   {"Q5_1", Mix::kQ5_1, TensorType::kQ5_1},
    {"Q5_0", Mix::kQ5_0, TensorType::kQ5_0},       {"Q4_K_M", Mix::kQ4_K_M, TensorType::kQ4_K},
    {"Q4_K_S", Mix::kQ4_K_S, TensorType::kQ4_K},   {"Q4_1", Mix::kQ4_1, TensorType::kQ4_1},
    {"Q4_0", Mix::kQ4_0, TensorType::kQ4_0},       {"IQ4_NL", Mix::kIQ4_NL, TensorType::kIQ4_NL},
    {"IQ4_XS", Mix::kIQ4_XS, TensorType::kIQ4_XS}, {"Q3_K_L", Mix::kQ3_K_L, TensorType::kQ3_K},
    {"Q3_K_M", Mix::kQ3_K_M, TensorType::kQ3_K},   {"Q3_K_S", Mix::kQ3_K_S, TensorType::kQ3_K},
    {"IQ3_M", Mix::kIQ3_M, TensorType::kIQ3_S},    {"IQ3_S", Mix::kIQ3_S, TensorType::kIQ3_S},
    {"IQ3_XS", Mix::kIQ3_XS, TensorType::kIQ3_S},  {"IQ3_XXS", Mix::kIQ3_XXS, TensorType::kIQ3_XXS},
    {"Q2_K", Mix::kQ2_K, TensorType::kQ2_K},       {"Q2_K_S", Mix::kQ2_K_S, TensorType::kQ2_K},
    {"IQ2_M", Mix::kIQ2_M, TensorType::kIQ2_S},    {"IQ2_S", Mix::kIQ2_S, TensorType::kIQ2_XS},
    {"IQ2_XS", Mix::kIQ2_XS, TensorType::kIQ2_XS}, {"IQ2_XXS", Mix::kIQ2_XXS, TensorType::kIQ2_XXS},
});

struct Alias {
  std::string_view name;
  std::string_view stands_for;
};
constexpr auto kAliases =
    std::to_array<Alias>({{"Q3_K", "Q3_K_M"}, {"Q4_K", "Q4_K_M"}, {"Q5_K", "Q5_K_M"}});

// Parts of names of tensors that stay as they are: small, or fed to something other than a
// product.
constexpr auto kLeftAlone = std::to_array<std::string_view>(
    {"_norm.weight", "ffn_gate_inp.weight", "ssm_conv1d", "shortconv.conv.weight", "time_mix_",
     "attn_rel_b.weight", "altup", "laurel", "per_layer_model_proj", ".position_embd",
     ".patch_embd"});
constexpr auto kLeftAloneWhole =
    std::to_array<std::string_view>({"position_embd.weight", "token_types.weight"});

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

template <class... Mixes>
bool is_any(Mix mix, Mixes... mixes) {
  return ((mix == mixes) || ...);
}

// The first and last eighth of the layers, and every third between.
bool wants_more_bits(size_t i, size_t n) {
  return i < n / 8 || i >= 7 * n / 8 || (i - n / 8) % 3 == 2;
}

enum class Role {
  kEmbedding,
  kOutput,
  kQ,
  kK,
  kV,
  kQkv,
  kKvB,
  kAttentionOutput,
  kUp,
  kGate,
  kDown,
  kOther
};

constexpr auto kRoles = std::to_array<std::pair<std::string_view, Role>>({
    {"attn_qkv.weight", Role::kQkv},
    {"attn_kv_b.weight", Role::kKvB},
    {"attn_v.weight", Role::kV},
    {"attn_k.weight", Role::kK},
    {"attn_q.weight", Role::kQ},
    {"attn_output.weight", Role::kAttentionOutput},
    {"ffn_up", Role::kUp},
    {"ffn_gate", Role::kGate},
    {"ffn_down", Role::kDown},
});

Role role_of(std::string_view name) {
  if (name == "output.weight") return Role::kOutput;
  if (name == "token_embd.weight" || name == "per_layer_token_embd.weight") {
    return Role::kEmbedding;
  }
  for (const auto& [part, role] : kRoles) {
    if (contains(name, part)) return role;
  }
  return Role::kOther;
}

bool is_attention_v(Role role) {
  return role == Role::kV || role == Role::kQkv || role == Role::kKvB;
}

bool is_low_bit(Mix mix) {
  return is_any(mix, Mix::kIQ2_XXS, Mix::kIQ2_XS, Mix::kIQ2_S, Mix::kIQ2_M);
}

}  // namespace

std::span<const FileType> file_types() { return kFileTypes; }

const FileType* find_file_type(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string_view name = upper;
  for (const Alias& alias : kAliases) {
    if (alias.name == name) name = alias.stands_for;
  }
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  for (const FileType& type : kFileTypes) {
    if (type.name == name) return &type;
    if (is_number && static_cast<uint32_t>(type.mix) == number) return &type;
  }
  return nullptr;
}

std::string file_type_names() {
  std::string names;
  for (const FileType& type : kFileTypes) {
    names += names.empty() ? "" : ", ";
    names += type.name;
  }
  return names;
}

bool is_quantised_tensor(std::string_view name, std::span<const uint64_t> dims) {
  // [n, 1] is a vector written as a matrix.
  const bool matrix = std::any_of(dims.begin() + 1, dims.end(), [](uint64_t n) { return n > 1; });
  if (!matrix || !name.ends_with("weight")) return false;
  if (std::ranges::find(kLeftAloneWhole, name) != kLeftAloneWhole.end()) return false;
  return std::ranges::none_of(kLeftAlone,
                              [&](std::string_view part) { return contains(name, part); });
}

TensorType fitting_type(TensorType type, uint64_t cols) {
  const auto fits = [&](TensorType t) { return cols % tensor_geometry(t).block_weights == 0; };
  if (fits(type)) return type;
  const auto finer = [&] {
    if (type == TensorType::kQ2_K || type == TensorType::kQ3_K) return TensorType::kQ4_0;
    if (type == TensorType::kQ4_K) return TensorType::kQ5_0;
    if (type == TensorType::kQ5_K) return TensorType::kQ5_1;
    if (type == TensorType::kQ6_K) return TensorType::kQ8_0;
    return TensorType::kIQ4_NL;  // for the IQ types
  }();
  return fits(finer) ? finer : TensorType::kF16;
}

MixRules::MixRules(const FileType& file_type, MixFacts facts,
                   std::span<const std::string_view> names)
    : file_type_(file_type), facts_(std::move(facts)) {
  for (const std::string_view name : names) {
    const Role role = role_of(name);
    if (role == Role::kOutput) tied_ = false;
    if (is_attention_v(role)) ++n_attention_v_;
  }
}

TensorType MixRules::next(std::string_view name, uint64_t cols) {
  const Role role = role_of(name);
  if (role == Role::kOutput || (tied_ && role == Role::kEmbedding)) return output_type(cols);
  if (role == Role::kEmbedding) return embedding_type();
  if (is_low_bit(file_type_.mix)) return low_bit_type(name);
  switch (role) {
    case Role::kV:
    case Role::kQkv:
    case Role::kKvB:
      return attention_v_type();
    case Role::kQ:
    case Role::kK:
      return attention_qk_type(role == Role::kK);
    case Role::kAttentionOutput:
      return attention_output_type();
    case Role::kDown:
      return down_type(name);
    case Role::kGate:
      return gate_up_type(name, gate_++);
    case Role::kUp:
      return gate_up_type(name, up_++);
    case Role::kEmbedding:
    case Role::kOutput:
    case Role::kOther:
      return file_type_.type;
  }
  return file_type_.type;
}

// With tied embeddings the embedding matrix is the output matrix, too.
TensorType MixRules::output_type(uint64_t cols) const {
  if (cols % tensor_geometry(file_type_.type).block_weights != 0) return TensorType::kQ8_0;
  if (is_low_bit(file_type_.mix) || file_type_.mix == Mix::kIQ3_XXS) return TensorType::kQ5_K;
  return file_type_.type == TensorType::kQ8_0 ? TensorType::kQ8_0 : TensorType::kQ6_K;
}

TensorType MixRules::embedding_type() const {
  if (is_any(file_type_.mix, Mix::kIQ2_XXS, Mix::kIQ2_XS)) return TensorType::kQ2_K;
  if (is_any(file_type_.mix, Mix::kIQ2_S, Mix::kIQ2_M, Mix::kIQ3_XXS)) return TensorType::kIQ3_S;
  return file_type_.type;
}

TensorType MixRules::low_bit_type(std::string_view name) {
  const bool finer = is_any(file_type_.mix, Mix::kIQ2_S, Mix::kIQ2_M);
  const TensorType raised = finer ? TensorType::kIQ3_S : TensorType::kQ2_K;
  const Role role = role_of(name);
  if (is_attention_v(role)) {
    const bool few_heads = facts_.n_heads >= 4 * facts_.n_kv_heads || facts_.n_experts >= 4;
    return few_heads ? TensorType::kQ4_K : raised;
  }
  if (role == Role::kK && facts_.n_experts == 8) return TensorType::kQ4_K;
  if (role == Role::kDown) return down_++ < facts_.n_layers / 8 ? raised : file_type_.type;
  if (role == Role::kAttentionOutput) {
    if (facts_.n_experts == 8) return TensorType::kQ5_K;
    if (finer) return TensorType::kIQ3_S;
  }
  return file_type_.type;
}

// Fused q, k and v count as v.
TensorType MixRules::attention_v_type() {
  const bool few_heads = facts_.n_heads >= 4 * facts_.n_kv_heads;
  const size_t i = attention_v_++;
  const Mix mix = file_type_.mix;
  TensorType type = file_type_.type;
  if (mix == Mix::kQ2_K) {
    type = few_heads ? TensorType::kQ4_K : TensorType::kQ3_K;
  } else if (mix == Mix::kIQ3_XXS) {
    type = few_heads ? TensorType::kQ4_K : TensorType::kIQ3_S;
  } else if (mix == Mix::kIQ3_M ||
             (few_heads && is_any(mix, Mix::kQ2_K_S, Mix::kIQ3_XS, Mix::kIQ3_S))) {
    type = TensorType::kQ4_K;
  } else if (mix == Mix::kQ3_K_M) {
    type = i < 2 ? TensorType::kQ5_K : TensorType::kQ4_K;
  } else if (mix == Mix::kQ3_K_L || (few_heads && is_any(mix, Mix::kIQ4_NL, Mix::kIQ4_XS)) ||
             (mix == Mix::kQ4_K_S && i < 4)) {
    type = TensorType::kQ5_K;
  } else if (is_any(mix, Mix::kQ4_K_M, Mix::kQ5_K_M) && wants_more_bits(i, n_attention_v_)) {
    type = TensorType::kQ6_K;
  }
  // Eight query heads share a value head in the 70B models: the matrix is small.
  const bool is_70b = facts_.architecture == "llama" && facts_.n_layers == 80 &&
                      facts_.n_heads != facts_.n_kv_heads;
  if (is_70b && (type == TensorType::kQ3_K || type == TensorType::kQ4_K)) type = TensorType::kQ5_K;
  if (facts_.n_experts == 8) type = TensorType::kQ8_0;
  return type;
}

TensorType MixRules::attention_qk_type(bool is_key) const {
  if (is_key && facts_.n_experts == 8) return TensorType::kQ8_0;
  if (file_type_.mix == Mix::kIQ3_XS) return TensorType::kIQ3_XXS;
  if (file_type_.mix == Mix::kIQ3_XXS) return TensorType::kIQ2_S;
  return file_type_.type;
}

TensorType MixRules::attention_output_type() const {
  const Mix mix = file_type_.mix;
  if (facts_.n_experts == 8) {
    const bool raised =
        is_any(mix, Mix::kQ2_K, Mix::kIQ3_XS, Mix::kIQ3_XXS, Mix::kQ3_K_S, Mix::kQ3_K_M,
               Mix::kIQ4_NL, Mix::kQ4_K_S, Mix::kQ4_K_M, Mix::kIQ3_S, Mix::kIQ3_M, Mix::kIQ4_XS);
    return raised ? TensorType::kQ5_K : file_type_.type;
  }
  if (mix == Mix::kQ2_K) return TensorType::kQ3_K;
  if (mix == Mix::kIQ3_XXS) return TensorType::kIQ3_S;
  if (is_any(mix, Mix::kQ3_K_M, Mix::kIQ3_M)) return TensorType::kQ4_K;
  return mix == Mix::kQ3_K_L ? TensorType::kQ5_K : file_type_.type;
}

// Experts of one layer may lie anywhere in the file, so there the name counts.
size_t MixRules::layer_of(std::string_view name, size_t counter) const {
  if (facts_.n_experts <= 1 || !name.starts_with("blk.")) return counter;
  size_t layer = counter;
  std::from_chars(name.data() + 4, name.data() + name.size(), layer);
  return layer;
}

TensorType MixRules::down_type(std::string_view name) {
  const size_t i = layer_of(name, down_++);
  const size_t n = facts_.n_layers;
  const bool first = i < n / 8;
  switch (file_type_.mix) {
    case Mix::kQ2_K:
      return TensorType::kQ3_K;
    case Mix::kQ2_K_S:
      return first ? TensorType::kQ4_K : file_type_.type;
    case Mix::kIQ3_XXS:
      return first ? TensorType::kQ4_K : TensorType::kQ3_K;
    case Mix::kQ3_K_M:
      return i < n / 16 ? TensorType::kQ5_K : TensorType::kQ4_K;
    case Mix::kIQ3_M:
      return first || (facts_.n_experts == 8 && wants_more_bits(i, n)) ? TensorType::kQ4_K
                                                                       : file_type_.type;
    case Mix::kQ3_K_L:
      return TensorType::kQ5_K;
    case Mix::kQ4_K_M:
    case Mix::kQ5_K_M:
      return wants_more_bits(i, n) ? TensorType::kQ6_K : file_type_.type;
    case Mix::kIQ4_NL:
    case Mix::kIQ4_XS:
    case Mix::kQ4_K_S:
      return first ? TensorType::kQ5_K : file_type_.type;
    case Mix::kF32:
    case Mix::kF16:
    case Mix::kQ4_0:
    case Mix::kQ4_1:
    case Mix::kQ8_0:
    case Mix::kQ5_0:
    case Mix::kQ5_1:
    case Mix::kQ3_K_S:
    case Mix::kQ5_K_S:
    case Mix::kQ6_K:
    case Mix::kIQ2_XXS:
    case Mix::kIQ2_XS:
    case Mix::kIQ3_XS:
    case Mix::kIQ3_S:
    case Mix::kIQ2_S:
    case Mix::kIQ2_M:
    case Mix::kBF16:
      return file_type_.type;
  }
  return file_type_.type;
}

TensorType MixRules::gate_up_type(std::string_view name, size_t counter) const {
  const size_t i = layer_of(name, counter);
  const size_t n = facts_.n_layers;
  const bool between = i >= n / 8 && i < 7 * n / 8;
  return file_type_.mix == Mix::kIQ3_XS && between ? TensorType::kIQ3_XXS : file_type_.type;
}

}  // namespace godwit::apps
