// Small GGUF files, valid and with one defect each, beside what the parser has to say about them.
// The parser's test loops over this table, and the seed corpus of its fuzz target is this table
// written out (fuzz/make_gguf_corpus.cpp), so that the two cannot drift apart.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace godwit::testing {

struct GgufCase {
  std::string name;          // also the corpus file's
  std::string_view message;  // part of the error, or "" for a file that must be accepted
  std::vector<std::byte> bytes;
};

[[nodiscard]] std::vector<GgufCase> gguf_cases();

}  // namespace godwit::testing
