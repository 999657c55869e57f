// Any bytes through each supported kind of pre-tokenizer, with any user ranges: what was encoded
// must decode to the same bytes, and no special token may come out of a user range.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tokenizer/small_vocab.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/utf8.h"
#include "tokenizer/utf8_stream.h"

namespace {

using namespace godwit;
using namespace godwit::tokenizer;

const std::array<Tokenizer, 6>& tokenizers() {
  static const auto make = [](std::string_view pre) {
    Result<Tokenizer> tokenizer = Tokenizer::from_vocab(small_vocab(pre));
    check(tokenizer.has_value(), "the small vocabulary is refused");
    return std::move(*tokenizer);
  };
  static const std::array<Tokenizer, 6> all{make("gpt-2"),  make("smollm"),    make("qwen2"),
                                            make("qwen35"), make("llama-bpe"), make("default")};
  return all;
}

// Two bytes for each range: the gap before it, and its length.
std::vector<TextRange> user_ranges(std::string_view bytes, size_t text_bytes) {
  std::vector<TextRange> ranges;
  size_t at = 0;
  for (size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const size_t begin = at + static_cast<uint8_t>(bytes[i]);
    const size_t end = begin + 1 + static_cast<uint8_t>(bytes[i + 1]) % 16;
    if (end > text_bytes) break;
    ranges.push_back({begin, end});
    at = end;
  }
  return ranges;
}

// Walks the tokens along the text: each must stand for the bytes at its place.
void check_tokens(const Tokenizer& tokenizer, const MarkedText& text,
                  const std::vector<TokenId>& tokens) {
  size_t at = 0;
  for (const TokenId token : tokens) {
    const std::string_view bytes = tokenizer.bytes(token);
    check(text.text.substr(at, bytes.size()) == bytes, "a token that is not the text");
    for (const TextRange& range : text.user_ranges) {
      const bool touches = range.begin < at + bytes.size() && at < range.end;
      check(!touches || tokenizer.kind(token) == TokenKind::kNormal,
            "a special token out of a user range");
    }
    at += bytes.size();
  }
  check(at == text.text.size(), "bytes were lost");
}

void check_stream(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens,
                  std::string_view text) {
  Utf8Stream by_token;
  std::string streamed;
  for (const TokenId token : tokens) streamed += by_token.push(tokenizer.bytes(token));
  streamed += by_token.finish();
  Utf8Stream at_once;
  std::string whole = at_once.push(text);
  whole += at_once.finish();
  check(streamed == whole, "the chunks changed the streamed text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // Byte 0 chooses the pre-tokenizer, byte 1 how many bytes of ranges follow; the rest is text.
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const Tokenizer& tokenizer = tokenizers()[data[0] % tokenizers().size()];
  const size_t n_range_bytes = std::min<size_t>(data[1] % 32, size - 2);
  MarkedText text{std::string(input.substr(2 + n_range_bytes)), {}};
  text.user_ranges = user_ranges(input.substr(2, n_range_bytes), text.text.size());

  const std::vector<TokenId> marked = tokenizer.encode(text, AddBos::kNever);
  check_tokens(tokenizer, text, marked);
  check_stream(tokenizer, marked, text.text);
  const std::vector<TokenId> plain = tokenizer.encode(text.text, Specials::kText, AddBos::kNever);
  check(tokenizer.decode(plain) == text.text, "decoding does not undo encoding");
  return 0;
}
