// Tokenizes for tests/conformance/tokenizer.py, one process per vocabulary: the argument is a model
// file; one JSON object a line comes in ({"text", "parse_special", "add_bos"}), a list of ids goes
// out.
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "gguf/file.h"
#include "tokenizer/tokenizer.h"

namespace {

using godwit::TokenId;
using godwit::tokenizer::AddBos;
using godwit::tokenizer::Specials;
using godwit::tokenizer::Tokenizer;
using Json = nlohmann::json;

Json ids(const Tokenizer& tokenizer, const Json& request) {
  const auto specials = request["parse_special"].get<bool>() ? Specials::kParse : Specials::kText;
  const auto add_bos = request["add_bos"].get<bool>() ? AddBos::kAsModelSays : AddBos::kNever;
  Json out = Json::array();
  for (const TokenId id : tokenizer.encode(request["text"].get<std::string>(), specials, add_bos)) {
    out.push_back(id.value);
  }
  return out;
}

int fails(const godwit::Error& error) {
  std::fprintf(stderr, "tokenize_lines: %s\n", error.message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fails({.message = "expected one argument, a GGUF file"});
  const auto file = godwit::gguf::File::open(argv[1]);
  if (!file) return fails(file.error());
  const auto tokenizer = Tokenizer::load(*file);
  if (!tokenizer) return fails(tokenizer.error());
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << ids(*tokenizer, Json::parse(line)) << '\n';
  }
}
