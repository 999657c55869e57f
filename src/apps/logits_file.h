// The file that `perplexity --save-all-logits` leaves and `--kl-divergence` reads: a base model's
// log-probabilities in 16 bits each, in llama.cpp's format (tools/perplexity/perplexity.cpp of
// build 11434), so that either program reads the other's. Little-endian:
//   "_logits_"  i32 n_ctx  i32 n_vocab  i32 n_chunks  i32 tokens[n_chunks][n_ctx]
//   rows[n_chunks][n_ctx - 1 - n_ctx / 2], for the second half of every chunk, each
//     f32 scale  f32 least  u16 steps[n_vocab, rounded up to even]
// where step s stands for the log-probability least + scale * s. The file is untrusted input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/types.h"

namespace godwit::apps {

struct LogitsShape {
  uint32_t n_ctx = 0;
  uint32_t n_vocab = 0;
  uint32_t n_chunks = 0;

  [[nodiscard]] size_t rows_per_chunk() const { return n_ctx - 1 - n_ctx / 2; }
  [[nodiscard]] size_t row_bytes() const { return 8 + 2 * ((size_t{n_vocab} + 1) / 2 * 2); }
};

// One row, where it lies; `steps` may be misaligned.
struct PackedLogProbs {
  float scale = 0;
  float least = 0;
  std::span<const std::byte> steps;  // u16 [n_vocab]

  // The log-probabilities, [n_vocab].
  void unpack(std::span<float> out) const;
};

// A view; the bytes must outlive it.
class LogitsFile {
 public:
  // Errors: another kind of file, sizes that do not fit the file's, a token outside the
  // vocabulary. Rows are looked at only when they are asked for.
  [[nodiscard]] static Result<LogitsFile> parse(std::span<const std::byte> bytes);

  [[nodiscard]] const LogitsShape& shape() const { return shape_; }
  // chunk < n_chunks
  [[nodiscard]] std::vector<TokenId> tokens(size_t chunk) const;
  // row < rows_per_chunk. Errors: values that are no log-probabilities.
  [[nodiscard]] Result<PackedLogProbs> row(size_t chunk, size_t row) const;

 private:
  LogitsShape shape_;
  std::span<const std::byte> tokens_;
  std::span<const std::byte> rows_;
};

// Packs one row of logits; `log_sum` is ln(sum(exp(logits))). [row_bytes], every one written.
void pack_log_probs(std::span<const float> logits, double log_sum, std::span<std::byte> out);

class LogitsWriter {
 public:
  // Errors: the file cannot be written; a shape the format has no room for.
  [[nodiscard]] static Result<LogitsWriter> create(const std::string& path,
                                                   const LogitsShape& shape,
                                                   std::span<const TokenId> tokens);
  // Packed rows in order.
  [[nodiscard]] Status write(std::span<const std::byte> bytes);
  [[nodiscard]] Status close();

 private:
  LogitsWriter(std::string path, std::ofstream file)
      : path_(std::move(path)), file_(std::move(file)) {}

  std::string path_;
  std::ofstream file_;
};

}  // namespace godwit::apps
