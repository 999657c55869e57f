// Sampler settings and logits from arbitrary bytes: creation fails with a message or yields a
// sampler, and a sampler answers with a token of the vocabulary, the same one twice.
#include "sampling/sampler.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace {

using godwit::TokenId;

// Takes values off the front of the input; zeros when it has run out.
class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> data) : data_(data) {}

  template <class T>
  T take() {
    T value{};
    const size_t n = data_.size() < sizeof(T) ? data_.size() : sizeof(T);
    std::memcpy(&value, data_.data(), n);
    data_ = data_.subspan(n);
    return value;
  }
  std::string text(size_t most) {
    const size_t wanted = take<uint8_t>() % (most + 1);
    const size_t n = data_.size() < wanted ? data_.size() : wanted;
    std::string value(data_.begin(), data_.begin() + static_cast<ptrdiff_t>(n));
    data_ = data_.subspan(n);
    return value;
  }
  [[nodiscard]] bool empty() const { return data_.empty(); }

 private:
  std::span<const uint8_t> data_;
};

godwit::sampling::SamplerSettings settings_from(Bytes& in) {
  godwit::sampling::SamplerSettings s;
  s.seed = in.take<uint8_t>();
  if (const std::string order = in.text(60); !order.empty()) s.order = order;
  for (float* const value :
       {&s.temperature, &s.dynatemp_range, &s.dynatemp_exponent, &s.top_p, &s.min_p, &s.typical_p,
        &s.top_n_sigma, &s.xtc_probability, &s.xtc_threshold, &s.repeat_penalty,
        &s.frequency_penalty, &s.presence_penalty, &s.dry_multiplier, &s.dry_base}) {
    // Mostly the usual range, sometimes any bits at all.
    const auto kind = in.take<uint8_t>();
    if (kind == 255) *value = in.take<float>();
    if (kind < 200) *value = static_cast<float>(kind) / 64.0f - 0.5f;
  }
  s.top_k = in.take<int16_t>();
  s.min_keep = in.take<int8_t>();
  s.penalty_last_n = in.take<int8_t>();
  s.dry_allowed_length = in.take<int8_t>();
  s.dry_penalty_last_n = in.take<int8_t>();
  s.dry_sequence_breakers.clear();  // these need a vocabulary
  for (int i = in.take<uint8_t>() % 4; i > 0; --i) {
    s.logit_bias.emplace_back(TokenId{in.take<int8_t>()}, in.take<float>());
  }
  return s;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes in({data, size});
  const godwit::sampling::SamplerSettings settings = settings_from(in);
  std::vector<TokenId> history;
  for (int i = in.take<uint8_t>() % 64; i > 0; --i) history.push_back(TokenId{in.take<int8_t>()});
  std::vector<float> logits;
  do {
    const auto kind = in.take<uint8_t>();
    logits.push_back(kind == 255 ? in.take<float>() : static_cast<float>(kind) / 8.0f - 16.0f);
  } while (!in.empty());

  auto sampler = godwit::sampling::Sampler::create(settings, nullptr);
  if (!sampler) {
    if (sampler.error().message.empty()) __builtin_trap();
    return 0;
  }
  for (int32_t position = 0; position < 3; ++position) {
    const TokenId token = sampler->sample(logits, history, godwit::Position{position});
    if (token.value < 0 || static_cast<size_t>(token.value) >= logits.size()) __builtin_trap();
    if (sampler->sample(logits, history, godwit::Position{position}) != token) __builtin_trap();
  }
  return 0;
}
