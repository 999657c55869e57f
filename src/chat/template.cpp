#include "chat/template.h"

#include <ctime>
#include <optional>

#include "chat/jinja/evaluator.h"
#include "chat/jinja/json_value.h"
#include "chat/jinja/parser.h"

namespace godwit::chat {

namespace {

// A JSON input by the name that errors use.
jinja::Value parsed(jinja::Budget& budget, std::string_view what, std::string_view json) {
  try {
    return jinja::parse_json(budget, json);
  } catch (const jinja::RenderError& error) {
    jinja::raise("{}: {}", what, error.message);
  }
}

// Transformers hands over exactly these variables; a token that the model lacks stays undefined.
void define_inputs(jinja::Evaluator& evaluator, jinja::Budget& budget, const RenderInput& input) {
  if (!input.bos_token.empty()) {
    evaluator.define("bos_token", jinja::make_text(input.bos_token));
  }
  if (!input.eos_token.empty()) {
    evaluator.define("eos_token", jinja::make_text(input.eos_token));
  }
  evaluator.define("documents", jinja::None{});
  if (!input.extra_json.empty()) {
    const jinja::Value extra = parsed(budget, "extra variables", input.extra_json);
    if (!extra.dict()) {
      jinja::raise("extra variables: expected a JSON object, found {}", jinja::type_name(extra));
    }
    for (const auto& [key, value] : extra.dict()->entries) {
      evaluator.define(std::string(key.text()->view()), value);
    }
  }
  jinja::Value messages = parsed(budget, "messages", input.messages_json);
  if (!messages.sequence()) {
    jinja::raise("messages: expected a JSON array, found {}", jinja::type_name(messages));
  }
  evaluator.define("messages", std::move(messages));
  evaluator.define("tools", input.tools_json.empty() ? jinja::Value()
                                                     : parsed(budget, "tools", input.tools_json));
  evaluator.define("add_generation_prompt", input.add_generation_prompt);
}

}  // namespace

struct Template::Impl {
  jinja::Ast ast;
};

Template::Template(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::parse(std::string_view source) {
  try {
    return Template(std::make_unique<Impl>(Impl{jinja::parse(source)}));
  } catch (const jinja::SyntaxError& error) {
    return fail("chat template: line {}, column {}: {}", error.line, error.column, error.message);
  }
}

Result<MarkedText> Template::render(const RenderInput& input) const {
  jinja::Budget budget(input.limits);
  const std::int64_t now = input.now_unix_s.value_or(std::time(nullptr));
  jinja::Evaluator evaluator(impl_->ast, budget, now);
  try {
    define_inputs(evaluator, budget, input);
    return evaluator.run();
  } catch (const jinja::RenderError& error) {
    return evaluator.line() > 0
               ? fail("chat template: line {}: {}", evaluator.line(), error.message)
               : fail("chat template: {}", error.message);
  }
}

}  // namespace godwit::chat
