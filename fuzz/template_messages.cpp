// Messages, tools and extra variables come from any client. The first byte chooses which of them
// the rest is; the template uses values of any type in the ways that models' templates do. Text
// that came from outside must come out marked: no special token may form outside of the marks.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "chat/template.h"

namespace {

using godwit::TextRange;
using godwit::chat::RenderInput;
using godwit::chat::Template;

// The template itself never writes this, so every one in the output is the client's.
constexpr std::string_view kToken = "<|x|>";

constexpr std::string_view kTemplate = R"({{ bos_token }}
{%- macro show(v, depth) %}
{%- if v is mapping %}{% for k, e in v|dictsort %}{{ k }}:{{ show(e, depth + 1) }}{% endfor %}
{%- elif v is string %}{{ v|trim }}{{ v.split('\n')[-1].strip('x') }}{{ v|upper }}{{ v[::-1][::-1] }}
{%- elif v is iterable and depth < 9 %}{% for e in v %}{{ show(e, depth + 1) }},{% endfor %}
{%- else %}{{ v ~ '' }}{% endif %}
{%- endmacro %}
{%- for m in messages %}{{ loop.index }}{{ show(m, 0) }}{{ m|tojson(indent=2) }}{{ m }}
{%- if m is mapping and m.content is string %}{{ '<|im_start|>' + m.content + '<|im_end|>' }}
{{- m.content|replace('a', 'b') }}{{ '%s' % m.content }}{{ '{:>9}'.format(m.content) }}
{%- endif %}{% endfor %}
{%- if tools %}{{ tools|tojson }}{{ show(tools, 0) }}{% endif %}
{{- show(extra, 0) if extra is defined }}{{ [messages, tools]|string|length }})";

bool is_marked(const godwit::MarkedText& text, std::size_t begin, std::size_t end) {
  for (const TextRange& range : text.user_ranges) {
    if (range.begin <= begin && end <= range.end) {
      return true;
    }
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto parsed = Template::parse(kTemplate);
  if (!parsed) {
    std::abort();
  }
  if (size == 0) {
    return 0;
  }
  const std::string json(reinterpret_cast<const char*>(data) + 1, size - 1);  // bytes as text
  const int choice = data[0] % 3;
  const RenderInput input{
      .messages_json = choice == 0 ? json : "[]",
      .tools_json = choice == 1 ? json : "",
      .extra_json = choice == 2 ? json : "",
      .bos_token = "<s>",
      .limits = {.max_steps = 100'000, .max_bytes = 1 << 22, .max_output_bytes = 1 << 20}};
  const auto out = parsed->render(input);
  if (!out) {
    return 0;
  }
  for (std::size_t at = out->text.find(kToken); at != std::string::npos;
       at = out->text.find(kToken, at + 1)) {
    if (!is_marked(*out, at, at + kToken.size())) {
      std::abort();
    }
  }
  return 0;
}
