#include "apps/tokenize.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/command.h"
#include "apps/model_options.h"
#include "apps/model_path.h"
#include "gguf/file.h"
#include "tokenizer/tokenizer.h"

namespace godwit::apps {
namespace {

using nlohmann::json;
using tokenizer::AddBos;
using tokenizer::Specials;
using tokenizer::Tokenizer;

struct TokenizeOptions {
  std::string model;
  HubOptions hub;
  std::string prompt;
  std::string file;
  bool from_stdin = false;
  bool ids_only = false;
  bool no_bos = false;
  bool no_parse_special = false;
  bool escape = true;
  bool show_count = false;
  bool as_json = false;
};

Result<Tokenizer> load_tokenizer(const TokenizeOptions& options) {
  Result<std::filesystem::path> path = find_model(options.model, options.hub);
  if (!path) return fail(std::move(path).error());
  const Result<gguf::File> file = gguf::File::open(*path);
  if (!file) return fail(file.error());
  Result<Tokenizer> tokenizer = Tokenizer::load(*file);
  if (!tokenizer) return fail(std::move(tokenizer).error().with(path->string()));
  return tokenizer;
}

Result<std::string> read_input(const TokenizeOptions& options) {
  Result<std::string> text = options.from_stdin      ? read_text_file("-")
                             : !options.file.empty() ? read_text_file(options.file)
                                                     : Result<std::string>(options.prompt);
  if (!text || !options.escape) return text;
  return without_escapes(*text);
}

std::string format_ids(const std::vector<TokenId>& tokens) {
  std::string line = "[";
  for (size_t i = 0; i < tokens.size(); ++i) {
    fmt::format_to(std::back_inserter(line), "{}{}", i > 0 ? ", " : "", tokens[i].value);
  }
  return line + "]\n";
}

// One line a token; the bytes as they are, though they may be half a character.
std::string format_table(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  std::string table;
  for (const TokenId token : tokens) {
    fmt::format_to(std::back_inserter(table), "{:6} -> '", token.value);
    table += tokenizer.bytes(token);
    table += "'\n";
  }
  return table;
}

// Bytes in hexadecimal too: a token may be half a character, which JSON cannot say.
std::string format_json(const Tokenizer& tokenizer, const std::vector<TokenId>& tokens) {
  json pieces = json::array();
  json ids = json::array();
  for (const TokenId token : tokens) {
    const std::string_view bytes = tokenizer.bytes(token);
    std::string hex;
    for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    ids.push_back(token.value);
    pieces.push_back({{"id", token.value}, {"text", std::string(bytes)}, {"hex", hex}});
  }
  const json out = {{"n_tokens", tokens.size()}, {"ids", ids}, {"tokens", pieces}};
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Status tokenize(const TokenizeOptions& options) {
  const Result<Tokenizer> tokenizer = load_tokenizer(options);
  if (!tokenizer) return fail(tokenizer.error());
  const Result<std::string> text = read_input(options);
  if (!text) return fail(text.error());
  const std::vector<TokenId> tokens =
      tokenizer->encode(*text, options.no_parse_special ? Specials::kText : Specials::kParse,
                        options.no_bos ? AddBos::kNever : AddBos::kAsModelSays);
  std::string out = options.as_json    ? format_json(*tokenizer, tokens)
                    : options.ids_only ? format_ids(tokens)
                                       : format_table(*tokenizer, tokens);
  if (options.show_count && !options.as_json)
    out += fmt::format("Total number of tokens: {}\n", tokens.size());
  const bool written = std::fwrite(out.data(), 1, out.size(), stdout) == out.size();
  if (!written || std::fflush(stdout) != 0) return fail("cannot write to standard output");
  return {};
}

}  // namespace

void add_tokenize_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("tokenize", "Show the tokens of a text");
  const auto options = std::make_shared<TokenizeOptions>();
  add_model_source(*command, options->model, options->hub);
  CLI::Option* prompt = command->add_option("-p,--prompt", options->prompt, "Text");
  CLI::Option* file = command->add_option("-f,--file", options->file, "File with the text");
  CLI::Option* from_stdin =
      command->add_flag("--stdin", options->from_stdin, "Read the text from standard input")
          ->excludes(prompt)
          ->excludes(file);
  file->excludes(prompt);
  command->add_flag("--ids", options->ids_only, "Ids alone, as a list: [1, 2, 3]");
  command->add_flag("--no-bos", options->no_bos, "Do not begin with the BOS token");
  command->add_flag("--no-parse-special", options->no_parse_special,
                    "Take the text of special tokens as plain text");
  command->add_flag("-e,--escape,!--no-escape", options->escape,
                    "Replace \\n, \\t, \\xHH and their like in the text (the default)");
  command->add_flag("--show-count", options->show_count, "Print the number of tokens at the end");
  command->add_flag("--json", options->as_json,
                    "One JSON object: n_tokens, ids, tokens (id, text, hex)");
  command->footer(
      "Example:\n  godwit tokenize -m smollm2 -p \"Hello world\"\n"
      "  godwit tokenize -m smollm2 --no-escape --ids --stdin < main.c");
  command->callback([options, prompt, file, from_stdin] {
    const bool has_text = prompt->count() + file->count() + from_stdin->count() > 0;
    if (!has_text) finish(fail("tokenize: expected one of --prompt, --file and --stdin"));
    finish(tokenize(*options));
  });
}

std::string without_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    const char what = text[++i];
    switch (what) {
      case 'n':
        out += '\n';
        break;
      case 'r':
        out += '\r';
        break;
      case 't':
        out += '\t';
        break;
      case '\'':
      case '"':
      case '\\':
        out += what;
        break;
      case 'x': {
        uint8_t byte = 0;
        const std::string_view digits = text.substr(i + 1, 2);
        const char* end = digits.data() + digits.size();
        const auto [stop, error] = std::from_chars(digits.data(), end, byte, 16);
        if (digits.size() == 2 && error == std::errc{} && stop == end) {
          out += static_cast<char>(byte);
          i += 2;
          break;
        }
        out += "\\x";
        break;
      }
      default:
        out += '\\';
        out += what;
    }
  }
  return out;
}

}  // namespace godwit::apps
