#include "apps/logits_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

#include "base/bits.h"
#include "base/check.h"

namespace godwit::apps {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "_logits_";
constexpr size_t kHeaderBytes = 20;
constexpr uint32_t kMaxCount = 1u << 30;
constexpr float kMaxStep = 65535.0f;
// What is less likely than e^-16 of the likeliest is rounded up to that.
constexpr float kRange = 16.0f;
// Rounding may take the likeliest token's probability a little above one.
constexpr float kSlack = 1e-2f;

template <class T>
T load(std::span<const std::byte> bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Bytes of a whole file; nullopt when 64 bits do not count them.
std::optional<uint64_t> file_bytes(const LogitsShape& shape) {
  const uint64_t token_bytes = uint64_t{4} * shape.n_ctx;
  const auto row_bytes = checked_mul(shape.rows_per_chunk(), shape.row_bytes());
  const auto chunk_bytes = row_bytes ? checked_add(*row_bytes, token_bytes) : std::nullopt;
  const auto all = chunk_bytes ? checked_mul(*chunk_bytes, shape.n_chunks) : std::nullopt;
  return all ? checked_add(*all, kHeaderBytes) : std::nullopt;
}

Status check_count(const char* what, uint32_t value, uint32_t least, size_t at) {
  if (value >= least && value <= kMaxCount) return {};
  return fail("{} is {} at byte {}; expected {} to {}", what, static_cast<int32_t>(value), at,
              least, kMaxCount);
}

Status check_shape(const LogitsShape& shape) {
  if (Status s = check_count("n_ctx", shape.n_ctx, 4, 8); !s) return s;
  if (Status s = check_count("n_vocab", shape.n_vocab, 2, 12); !s) return s;
  return check_count("n_chunks", shape.n_chunks, 1, 16);
}

}  // namespace

void PackedLogProbs::unpack(std::span<float> out) const {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = scale * static_cast<float>(load<uint16_t>(steps, 2 * i)) + least;
  }
}

Result<LogitsFile> LogitsFile::parse(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0) {
    return fail("not a file of saved logits: expected '{}' and three counts in front", kMagic);
  }
  LogitsFile file;
  file.shape_ = {.n_ctx = load<uint32_t>(bytes, 8),
                 .n_vocab = load<uint32_t>(bytes, 12),
                 .n_chunks = load<uint32_t>(bytes, 16)};
  const LogitsShape& shape = file.shape_;
  if (Status s = check_shape(shape); !s) return fail(s.error());
  const std::optional<uint64_t> expected = file_bytes(shape);
  if (!expected || *expected != bytes.size()) {
    return fail("{} chunks of {} tokens over {} entries take {} bytes, the file has {}",
                shape.n_chunks, shape.n_ctx, shape.n_vocab,
                expected ? fmt::format("{}", *expected) : "more than 2^64", bytes.size());
  }
  const size_t token_bytes = size_t{4} * shape.n_ctx * shape.n_chunks;
  file.tokens_ = bytes.subspan(kHeaderBytes, token_bytes);
  file.rows_ = bytes.subspan(kHeaderBytes + token_bytes);
  for (size_t at = 0; at < token_bytes; at += 4) {
    const auto token = load<int32_t>(file.tokens_, at);
    if (token < 0 || static_cast<uint32_t>(token) >= shape.n_vocab) {
      return fail("token {} at byte {} is outside the vocabulary of {}", token, kHeaderBytes + at,
                  shape.n_vocab);
    }
  }
  return file;
}

std::vector<TokenId> LogitsFile::tokens(size_t chunk) const {
  check(chunk < shape_.n_chunks, "a chunk that the file has");
  std::vector<TokenId> ids(shape_.n_ctx);
  for (size_t i = 0; i < ids.size(); ++i) {
    ids[i] = {load<int32_t>(tokens_, 4 * (chunk * shape_.n_ctx + i))};
  }
  return ids;
}

Result<PackedLogProbs> LogitsFile::row(size_t chunk, size_t row) const {
  check(chunk < shape_.n_chunks && row < shape_.rows_per_chunk(), "a row that the file has");
  const size_t bytes = shape_.row_bytes();
  const std::span<const std::byte> packed =
      rows_.subspan((chunk * shape_.rows_per_chunk() + row) * bytes, bytes);
  const PackedLogProbs found{.scale = load<float>(packed, 0),
                             .least = load<float>(packed, 4),
                             .steps = packed.subspan(8, size_t{2} * shape_.n_vocab)};
  // So written, NaN fails too.
  const bool sound = found.scale >= 0 && found.scale <= 1 &&
                     found.least >= -std::numeric_limits<float>::max() &&
                     found.least + found.scale * kMaxStep <= kSlack;
  if (sound) return found;
  return fail("row {} of chunk {}: scale {} and least {} give no log-probabilities", row, chunk,
              found.scale, found.least);
}

void pack_log_probs(std::span<const float> logits, double log_sum, std::span<std::byte> out) {
  const auto [low, most] = std::minmax_element(logits.begin(), logits.end());
  const float least = std::max(*low, *most - kRange);
  const float scale = (*most - least) / kMaxStep;
  const auto least_log_prob = static_cast<float>(static_cast<double>(least) - log_sum);
  std::memcpy(out.data(), &scale, sizeof scale);
  std::memcpy(out.data() + 4, &least_log_prob, sizeof least_log_prob);
  std::fill(out.begin() + 8, out.end(), std::byte{0});
  const float inverse = scale > 0 ? 1.0f / scale : 0.0f;
  for (size_t i = 0; i < logits.size(); ++i) {
    // Adding 1.5 * 2^23 leaves the nearest whole number in the low bits, as round-to-even says.
    const float steps = std::clamp(inverse * (logits[i] - least), 0.0f, kMaxStep);
    const auto step = static_cast<uint16_t>(std::bit_cast<uint32_t>(steps + 12582912.0f));
    std::memcpy(out.data() + 8 + 2 * i, &step, sizeof step);
  }
}

Result<LogitsWriter> LogitsWriter::create(const std::string& path, const LogitsShape& shape,
                                          std::span<const TokenId> tokens) {
  if (Status s = check_shape(shape); !s) return fail(Error(s.error()).with(path));
  check(tokens.size() == size_t{shape.n_ctx} * shape.n_chunks, "the tokens of every chunk");
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return fail("cannot write '{}'", path);
  LogitsWriter writer(path, std::move(file));
  std::vector<std::byte> header(kHeaderBytes);
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  std::memcpy(header.data() + 8, &shape.n_ctx, 4);
  std::memcpy(header.data() + 12, &shape.n_vocab, 4);
  std::memcpy(header.data() + 16, &shape.n_chunks, 4);
  if (Status s = writer.write(header); !s) return fail(s.error());
  static_assert(sizeof(TokenId) == 4);
  if (Status s = writer.write(std::as_bytes(tokens)); !s) return fail(s.error());
  return writer;
}

Status LogitsWriter::write(std::span<const std::byte> bytes) {
  file_.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  if (!file_) return fail("cannot write '{}': disk full?", path_);
  return {};
}

Status LogitsWriter::close() {
  file_.close();
  if (!file_) return fail("cannot write '{}': disk full?", path_);
  return {};
}

}  // namespace godwit::apps
