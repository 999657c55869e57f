// The model file's own chat template (Jinja), rendered as Transformers' apply_chat_template does
// (jinja2 ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loopcontrols; tojson, the
// globals raise_exception and strftime_now). Text that came from messages or tools stays marked
// through the rendering, so that the tokenizer never takes it for special tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/marked_text.h"
#include "base/result.h"
#include "chat/render_limits.h"

namespace godwit::chat {

struct RenderInput {
  std::string messages_json = {};  // array of {"role", "content", ...} in the OpenAI format
  std::string tools_json = {};     // array of tool definitions, or "" for none
  std::string extra_json = {};     // object of further variables, or ""
  std::string bos_token = {};      // "" where the model has none
  std::string eos_token = {};
  bool add_generation_prompt = true;
  std::optional<std::int64_t> now_unix_s = {};  // for strftime_now; absent: the clock
  RenderLimits limits = {};
};

class Template {
 public:
  // Errors: syntax, with line and column.
  [[nodiscard]] static Result<Template> parse(std::string_view source);

  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // Errors: invalid JSON, raise_exception's message, a type error with its line, a bound exceeded
  // (steps, output bytes, nesting).
  [[nodiscard]] Result<MarkedText> render(const RenderInput& input) const;

 private:
  struct Impl;
  explicit Template(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace godwit::chat
