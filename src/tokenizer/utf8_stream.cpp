#include "tokenizer/utf8_stream.h"

#include "tokenizer/utf8.h"

namespace godwit::tokenizer {

std::string Utf8Stream::push(std::string_view bytes) {
  // At most three bytes wait, so joining them first costs one copy of what came in.
  pending_ += bytes;
  std::string out;
  out.reserve(pending_.size());
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Step step = next_utf8(rest);
    if (step.kind == Utf8Kind::kUnfinished) break;
    out += step.kind == Utf8Kind::kCharacter ? rest.substr(0, step.bytes) : kReplacement;
    rest.remove_prefix(step.bytes);
  }
  pending_ = std::string(rest);
  return out;
}

std::string Utf8Stream::finish() {
  if (pending_.empty()) return {};
  // What waits is the beginning of one character: one maximal subpart.
  pending_.clear();
  return std::string(kReplacement);
}

}  // namespace godwit::tokenizer
