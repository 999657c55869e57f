// Values of flags that have a small grammar of their own: whatever the text, the answer is a value
// that means the same when it is written again, or an error of one line.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/bench/bench_plan.h"
#include "apps/bench/kernel_plan.h"
#include "apps/bench/peer.h"
#include "apps/bench/report.h"
#include "apps/bench/state_fill.h"
#include "apps/command.h"
#include "apps/flags.h"
#include "apps/model_options.h"
#include "apps/sampling_options.h"
#include "apps/synth.h"
#include "apps/tokenize.h"
#include "base/log.h"
#include "checks.h"

namespace {

using namespace godwit;  // NOLINT: one file, the names of one library

template <class T>
bool accepted(const Result<T>& result) {
  if (result) return true;
  require(!result.error().message.empty());
  require(apps::one_line(result.error().message).find('\n') == std::string::npos);
  return false;
}

void bias(std::string_view text) {
  const auto parsed = apps::parse_logit_bias(text);
  if (!accepted(parsed)) return;
  require(parsed->first.value >= 0 && text.find_first_of("+-") != std::string_view::npos);
  const char sign = text[text.find_first_of("+-")];
  require(std::isnan(parsed->second) || std::signbit(parsed->second) == (sign == '-'));
}

void prompt_gen(std::string_view text) {
  const auto test = apps::parse_prompt_gen(text);
  if (!accepted(test)) return;
  require(test->n_prompt > 0 || test->n_gen > 0);
  const auto again = apps::parse_prompt_gen(fmt::format("{},{}", test->n_prompt, test->n_gen));
  require(again && again->n_prompt == test->n_prompt && again->n_gen == test->n_gen);
}

void bench_values(std::string_view text) {
  if (const auto shape = apps::parse_matvec_shape(text); accepted(shape)) {
    const auto again = apps::parse_matvec_shape(fmt::format("{}x{}", shape->rows, shape->cols));
    require(again && *again == *shape);
  }
  if (const auto heads = apps::parse_attention_heads(text); accepted(heads)) {
    require(heads->n_heads % heads->n_kv_heads == 0);
  }
  if (const auto pair = apps::parse_kv_pair(text); accepted(pair)) {
    const auto again = apps::parse_kv_pair(
        fmt::format("{}/{}", apps::kv_type_name(pair->k), apps::kv_type_name(pair->v)));
    require(again && *again == *pair);
  }
  (void)accepted(apps::parse_isa(text));
  if (const auto rows = apps::parse_bench_rows(text); accepted(rows)) {
    for (const apps::BenchedTest& row : *rows) require(row.tokens_per_s > 0);
  }
}

void sampling_order(const std::string& text) {
  apps::SamplingOptions options;
  options.sampler.order = text;
  options.stops = {text};
  options.sampler.dry_sequence_breakers = {text};
  (void)accepted(apps::generate_settings(options));
  require(apps::without_escapes(text).size() <= text.size());
}

// A whole command line, a flag or value in each line of the text.
void command_line(std::string_view text) {
  static CLI::App* const app = [] {
    log::set_level(log::Level::kError);  // no warning for each ignored flag
    static CLI::App made("test");
    static apps::ModelOptions model;
    static apps::SamplingOptions sampling;
    CLI::App* command = made.add_subcommand("run", "");
    apps::add_model_options(*command, model);
    apps::add_sampling_options(*command, sampling);
    apps::settle_flags(made);
    return &made;
  }();
  std::vector<std::string> arguments = {"run"};
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    arguments.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto line = apps::spell_out_flags(*app, arguments);
  if (!accepted(line)) return;
  try {
    app->parse(std::vector<std::string>(line->arguments.rbegin(), line->arguments.rend()));
  } catch (const CLI::ParseError& error) {
    require(!apps::explain_usage_error(*app, error, *line).empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0 || size > 4096) return 0;
  const std::string text(data + 1, data + size);
  switch (data[0] % 9) {
    case 0:
      bias(text);
      break;
    case 1:
      prompt_gen(text);
      break;
    case 2:
      sampling_order(text);
      break;
    case 3:
      if (const auto type = apps::parse_kv_type(text); accepted(type)) {
        require(apps::parse_kv_type(apps::kv_type_name(*type)).has_value());
      }
      break;
    case 4:
      (void)accepted(apps::parse_bench_format(text));
      (void)accepted(apps::parse_state_fill(text));
      bench_values(text);
      break;
    case 5:
      if (const auto rule = apps::parse_type_rule(text); accepted(rule)) {
        require(!rule->pattern.empty());
      }
      break;
    case 6:
      if (const auto source = apps::chat_template_source(text); accepted(source)) {
        require(apps::chat_template_source(*source).has_value());
      }
      break;
    case 7:
      if (const auto kwargs = apps::chat_template_kwargs(text); accepted(kwargs)) {
        require(*kwargs == text);
      }
      break;
    default:
      command_line(text);
  }
  return 0;
}
