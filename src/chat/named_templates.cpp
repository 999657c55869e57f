#include "chat/named_templates.h"

#include <algorithm>
#include <array>
#include <string>

namespace godwit::chat {
namespace {

// What all of them use. text(m): a message's content, its parts one under the other. bare(m): the
// same without the white space around it, as C's isspace sees it. tag(role): the token <|role|>,
// in the template's own words for the roles that exist, since a role comes from outside and so
// never becomes a token by itself. ask: whether the assistant is to begin.
constexpr std::string_view kShared = R"({% macro text(m) %}
{% if m.content is string %}{{ m.content }}
{%- elif m.content %}{{ m.content|selectattr('text', 'defined')|map(attribute='text')|join('\n') }}
{%- endif %}{% endmacro %}
{% macro bare(m) %}{{ text(m)|trim(' \t\n\r\x0b\x0c') }}{% endmacro %}
{% macro tag(role) %}{{ {'system': '<|system|>', 'user': '<|user|>', 'tool': '<|tool|>',
  'assistant': '<|assistant|>'}.get(role, '<|' ~ role ~ '|>') }}{% endmacro %}
{% set ask = add_generation_prompt %}
)";

struct Row {
  std::string_view name;
  std::string_view source;
};

// Several formatters differ in a blank or a token only: these sources are shared, and the set
// statement before them says what differs.
constexpr std::string_view kMistral = R"(
{%- set ns = namespace(inside=false) %}
{%- for m in messages %}
{%- if not ns.inside %}{{ lead ~ '[INST]' ~ trail }}{% set ns.inside = true %}{% endif %}
{%- if m.role == 'system' %}{{ text(m) ~ '\n\n' }}
{%- elif m.role == 'user' %}{{ text(m) ~ lead ~ '[/INST]' }}
{%- else %}{{ trail ~ (bare(m) if strips else text(m)) ~ '</s>' }}{% set ns.inside = false %}
{%- endif %}
{%- endfor %})";

constexpr std::string_view kMistral7 = R"(
{%- for m in messages %}
{%- if m.role == 'system' %}{{ '[SYSTEM_PROMPT]' ~ trail ~ text(m) ~ '[/SYSTEM_PROMPT]' }}
{%- elif m.role == 'user' %}{{ '[INST]' ~ trail ~ text(m) ~ '[/INST]' }}
{%- else %}{{ trail ~ text(m) ~ '</s>' }}
{%- endif %}
{%- endfor %})";

constexpr std::string_view kLlama2 = R"(
{%- set ns = namespace(inside=true) %}{{ '[INST] ' }}
{%- for m in messages %}
{%- set said = bare(m) if strips else text(m) %}
{%- if not ns.inside %}{{ again }}{% set ns.inside = true %}{% endif %}
{%- if m.role == 'system' %}{{ before ~ said ~ after }}
{%- elif m.role == 'user' %}{{ said ~ ' [/INST]' }}
{%- else %}{{ said ~ '</s>' }}{% set ns.inside = false %}
{%- endif %}
{%- endfor %})";

constexpr std::string_view kVicuna = R"(
{%- for m in messages %}
{%- if m.role == 'system' %}{{ before ~ text(m) ~ after }}
{%- elif m.role == 'user' %}{{ 'USER: ' ~ text(m) ~ '\n' }}
{%- elif m.role == 'assistant' %}{{ 'ASSISTANT: ' ~ text(m) ~ '</s>\n' }}
{%- endif %}
{%- endfor %}{{ 'ASSISTANT:' if ask }})";

// A token with the role, and the text in the next line.
constexpr std::string_view kTagged = R"(
{{- start }}
{%- for m in messages %}{{ tag(m.role) ~ between ~ text(m) ~ end }}{% endfor %}
{{- last if ask }})";

constexpr std::string_view kExaone = R"(
{%- for m in messages %}
{%- if m.role in openings %}{{ openings[m.role] ~ bare(m) ~ (end if m.role != 'user' else user_end) }}
{%- endif %}
{%- endfor %}{{ openings.assistant if ask }})";

constexpr std::string_view kGranite = R"(
{%- for m in messages %}
{%- if m.role == 'assistant_tool_call' %}
{{- '<|start_of_role|>' ~ caller ~ '<|end_of_role|><|tool_call|>' }}
{%- else %}{{ '<|start_of_role|>' ~ m.role ~ '<|end_of_role|>' }}
{%- endif %}{{ text(m) ~ '<|end_of_text|>\n' }}
{%- endfor %}{{ '<|start_of_role|>assistant<|end_of_role|>' if ask }})";

constexpr std::string_view kBailing = R"(
{%- for m in messages %}
{{- '<role>' ~ ('HUMAN' if m.role == 'user' else m.role|upper) ~ '</role>' ~ text(m) ~ end }}
{%- endfor %}{{ '<role>ASSISTANT</role>' ~ think if ask }})";

struct Shared {
  std::string_view name;
  std::string_view settings;
  std::string_view source;
};
constexpr auto kFamilies = std::to_array<Shared>({
    {"bailing", "{% set end, think = '', '' %}", kBailing},
    {"bailing-think", "{% set end, think = '', '<think>' %}", kBailing},
    {"bailing2",
     "{% set end, think = '<|role_end|>', '' %}{% if not messages or messages[0].role != 'system' "
     "%}{{ '<role>SYSTEM</role>detailed thinking off<|role_end|>' }}{% endif %}",
     kBailing},
    {"chatglm3",
     R"({% set start, between, end, last = '[gMASK]sop', '\n ', '', '<|assistant|>' %})", kTagged},
    {"chatglm4",
     R"({% set start, between, end, last = '[gMASK]<sop>', '\n', '', '<|assistant|>\n' %})",
     kTagged},
    {"exaone-moe",
     R"({% set end, user_end = '<|endofturn|>\n', '<|endofturn|>\n' %}{% set openings = {
'system': '<|system|>\n', 'user': '<|user|>\n', 'assistant': '<|assistant|>\n',
'tool': '<|tool|>\n'} %})",
     kExaone},
    {"exaone3",
     R"({% set end, user_end = '[|endofturn|]\n', '\n' %}{% set openings = {
'system': '[|system|]', 'user': '[|user|]', 'assistant': '[|assistant|]'} %})",
     kExaone},
    {"exaone4",
     R"({% set end, user_end = '[|endofturn|]\n', '\n' %}{% set openings = {
'system': '[|system|]', 'user': '[|user|]', 'assistant': '[|assistant|]', 'tool': '[|tool|]'} %})",
     kExaone},
    {"falcon3", R"({% set start, between, end, last = '', '\n', '\n', '<|assistant|>\n' %})",
     kTagged},
    {"glmedge", R"({% set start, between, end, last = '', '\n', '', '<|assistant|>' %})", kTagged},
    {"granite", "{% set caller = 'assistant_tool_call' %}", kGranite},
    {"granite-4.0", "{% set caller = 'assistant' %}", kGranite},
    {"granite-4.1", "{% set caller = 'assistant' %}", kGranite},
    {"llama2", R"({% set strips, again, before, after = false, '[INST] ', '', '\n' %})", kLlama2},
    {"llama2-sys",
     R"({% set strips, again, before, after = false, '[INST] ', '<<SYS>>\n', '\n<</SYS>>\n\n' %})",
     kLlama2},
    {"llama2-sys-bos",
     R"({% set strips, again = false, '<s>[INST] ' %}
{%- set before, after = '<<SYS>>\n', '\n<</SYS>>\n\n' %})",
     kLlama2},
    {"llama2-sys-strip",
     R"({% set strips, again, before, after = true, '[INST] ', '<<SYS>>\n', '\n<</SYS>>\n\n' %})",
     kLlama2},
    {"mistral-v1", "{% set lead, trail, strips = ' ', ' ', false %}", kMistral},
    {"mistral-v3", "{% set lead, trail, strips = '', ' ', true %}", kMistral},
    {"mistral-v3-tekken", "{% set lead, trail, strips = '', '', false %}", kMistral},
    {"mistral-v7", "{% set trail = ' ' %}", kMistral7},
    {"mistral-v7-tekken", "{% set trail = '' %}", kMistral7},
    {"phi3", R"({% set start, between, end, last = '', '\n', '<|end|>\n', '<|assistant|>\n' %})",
     kTagged},
    {"vicuna", R"({% set before, after = '', '\n\n' %})", kVicuna},
    {"vicuna-orca", R"({% set before, after = 'SYSTEM: ', '\n' %})", kVicuna},
    {"zephyr",
     R"({% set start, between, end, last = '', '\n', '<|endoftext|>\n', '<|assistant|>\n' %})",
     kTagged},
});

constexpr auto kSingles = std::to_array<Row>({
    {"chatml", R"(
{%- for m in messages %}{{ '<|im_start|>' ~ m.role ~ '\n' ~ text(m) ~ '<|im_end|>\n' }}{% endfor %}
{{- '<|im_start|>assistant\n' if ask }})"},
    {"command-r", R"(
{%- set names = {'system': 'SYSTEM', 'user': 'USER', 'assistant': 'CHATBOT'} %}
{%- for m in messages %}
{%- if m.role in names %}
{{- '<|START_OF_TURN_TOKEN|><|' ~ names[m.role] ~ '_TOKEN|>' ~ bare(m) ~ '<|END_OF_TURN_TOKEN|>' }}
{%- endif %}
{%- endfor %}{{ '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>' if ask }})"},
    {"deepseek", R"(
{%- for m in messages %}
{%- if m.role == 'system' %}{{ text(m) }}
{%- elif m.role == 'user' %}{{ '### Instruction:\n' ~ text(m) ~ '\n' }}
{%- elif m.role == 'assistant' %}{{ '### Response:\n' ~ text(m) ~ '\n<|EOT|>\n' }}
{%- endif %}
{%- endfor %}{{ '### Response:\n' if ask }})"},
    {"deepseek2", R"(
{%- for m in messages %}
{%- if m.role == 'system' %}{{ text(m) ~ '\n\n' }}
{%- elif m.role == 'user' %}{{ 'User: ' ~ text(m) ~ '\n\n' }}
{%- elif m.role == 'assistant' %}
{{- 'Assistant: ' ~ text(m) ~ '<\uff5cend\u2581of\u2581sentence\uff5c>' }}
{%- endif %}
{%- endfor %}{{ 'Assistant:' if ask }})"},
    {"deepseek3", R"(
{%- for m in messages %}
{%- if m.role == 'system' %}{{ text(m) ~ '\n\n' }}
{%- elif m.role == 'user' %}{{ '<\uff5cUser\uff5c>' ~ text(m) }}
{%- elif m.role == 'assistant' %}
{{- '<\uff5cAssistant\uff5c>' ~ text(m) ~ '<\uff5cend\u2581of\u2581sentence\uff5c>' }}
{%- endif %}
{%- endfor %}{{ '<\uff5cAssistant\uff5c>' if ask }})"},
    {"gemma", R"(
{%- set ns = namespace(system='') %}
{%- for m in messages %}
{%- if m.role == 'system' %}{% set ns.system = ns.system ~ bare(m) %}
{%- else %}{{ '<start_of_turn>' ~ ('model' if m.role == 'assistant' else m.role) ~ '\n' }}
{%- if ns.system and m.role not in ('assistant', 'model') %}{{ ns.system ~ '\n\n' }}
{%- set ns.system = '' %}{% endif %}{{ bare(m) ~ '<end_of_turn>\n' }}
{%- endif %}
{%- endfor %}{{ '<start_of_turn>model\n' if ask }})"},
    {"gigachat", R"(
{%- set system = messages and messages[0].role == 'system' %}
{{- '<s>' ~ (text(messages[0]) ~ '<|message_sep|>' if system else '') }}
{%- for m in (messages[1:] if system else messages) %}
{%- if m.role == 'user' %}
{{- 'user<|role_sep|>' ~ text(m) ~ '<|message_sep|>available functions<|role_sep|>[]' }}
{{- '<|message_sep|>' }}
{%- elif m.role == 'assistant' %}{{ 'assistant<|role_sep|>' ~ text(m) ~ '<|message_sep|>' }}
{%- endif %}
{%- endfor %}{{ 'assistant<|role_sep|>' if ask }})"},
    {"gpt-oss", R"(
{%- for m in messages %}
{{- '<|start|>' ~ m.role ~ '<|message|>' ~ text(m) }}
{{- '<|return|>' if m.role == 'assistant' else '<|end|>' }}
{%- endfor %}{{ '<|start|>assistant' if ask }})"},
    {"grok-2", R"(
{%- for m in messages %}
{%- if m.role == 'system' %}{{ 'System: ' ~ bare(m) ~ '<|separator|>\n\n' }}
{%- elif m.role == 'user' %}{{ 'Human: ' ~ bare(m) ~ '<|separator|>\n\n' }}
{%- elif m.role == 'assistant' %}{{ 'Assistant: ' ~ text(m) ~ '<|separator|>\n\n' }}
{%- endif %}
{%- endfor %}{{ 'Assistant:' if ask }})"},
    {"hunyuan-dense", R"(
{%- for m in messages %}
{%- if m.role == 'system' and loop.first %}
{{- text(m) ~ '<\uff5chy_place\u2581holder\u2581no\u25813\uff5c>' }}
{%- elif m.role == 'user' %}{{ '<\uff5chy_User\uff5c>' ~ text(m) ~ '<\uff5chy_Assistant\uff5c>' }}
{%- elif m.role == 'assistant' %}
{{- '<\uff5chy_Assistant\uff5c>' ~ text(m) ~ '<\uff5chy_place\u2581holder\u2581no\u25812\uff5c>' }}
{%- endif %}
{%- endfor %})"},
    {"hunyuan-moe", R"(
{%- for m in messages %}
{%- if m.role == 'system' %}{{ '<|startoftext|>' ~ text(m) ~ '<|extra_4|>' }}
{%- elif m.role == 'assistant' %}{{ text(m) ~ '<|eos|>' }}
{%- else %}{{ '<|startoftext|>' ~ text(m) ~ '<|extra_0|>' }}
{%- endif %}
{%- endfor %})"},
    {"kimi-k2", R"(
{%- set openings = {'system': '<|im_system|>system<|im_middle|>',
  'user': '<|im_user|>user<|im_middle|>', 'assistant': '<|im_assistant|>assistant<|im_middle|>',
  'tool': '<|im_system|>tool<|im_middle|>'} %}
{%- for m in messages %}{{ openings.get(m.role, '') ~ text(m) ~ '<|im_end|>' }}{% endfor %}
{{- openings.assistant if ask }})"},
    {"llama3", R"(
{%- for m in messages %}
{{- '<|start_header_id|>' ~ m.role ~ '<|end_header_id|>\n\n' ~ bare(m) ~ '<|eot_id|>' }}
{%- endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' if ask }})"},
    {"llama4", R"(
{%- for m in messages %}
{{- '<|header_start|>' ~ m.role ~ '<|header_end|>\n\n' ~ bare(m) ~ '<|eot|>' }}
{%- endfor %}{{ '<|header_start|>assistant<|header_end|>\n\n' if ask }})"},
    {"megrez", R"(
{%- for m in messages %}
{{- '<|role_start|>' ~ m.role ~ '<|role_end|>' ~ text(m) ~ '<|turn_end|>' }}
{%- endfor %}{{ '<|role_start|>assistant<|role_end|>' if ask }})"},
    {"minicpm", R"(
{%- for m in messages %}
{{- '<\u7528\u6237>' ~ bare(m) ~ '<AI>' if m.role == 'user' else bare(m) }}
{%- endfor %})"},
    {"monarch", R"(
{%- for m in messages %}
{{- ('' if loop.first else '<s>') ~ m.role ~ '\n' ~ text(m) ~ '</s>\n' }}
{%- endfor %}{{ '<s>assistant\n' if ask }})"},
    {"openchat", R"(
{%- for m in messages %}
{%- if m.role == 'system' %}{{ text(m) ~ '<|end_of_turn|>' }}
{%- else %}
{{- 'GPT4 Correct ' ~ m.role[:1]|upper ~ m.role[1:] ~ ': ' ~ text(m) ~ '<|end_of_turn|>' }}
{%- endif %}
{%- endfor %}{{ 'GPT4 Correct Assistant:' if ask }})"},
    {"orion", R"(
{%- set ns = namespace(system='') %}
{%- for m in messages %}
{%- if m.role == 'system' %}{% set ns.system = ns.system ~ text(m) %}
{%- elif m.role == 'user' %}
{{- 'Human: ' ~ (ns.system ~ '\n\n' if ns.system else '') ~ text(m) ~ '\n\nAssistant: </s>' }}
{%- set ns.system = '' %}
{%- else %}{{ text(m) ~ '</s>' }}
{%- endif %}
{%- endfor %})"},
    {"pangu-embedded", R"(
{%- set names = {'system': '\u7cfb\u7edf', 'user': '\u7528\u6237', 'assistant': '\u52a9\u624b',
  'tool': '\u5de5\u5177', 'function': '\u65b9\u6cd5'} %}
{%- if messages and messages[0].role != 'system' %}
{{- '[unused9]' ~ names.system ~ '\uff1a[unused10]' }}
{%- endif %}
{%- for m in messages %}
{%- if m.role in names %}{{ '[unused9]' ~ names[m.role] ~ '\uff1a' ~ text(m) ~ '[unused10]' }}
{%- endif %}
{%- endfor %}{{ '[unused9]' ~ names.assistant ~ '\uff1a' if ask }})"},
    {"phi4", R"(
{%- for m in messages %}{{ '<|im_start|>' ~ m.role ~ '<|im_sep|>' ~ text(m) ~ '<|im_end|>' }}
{%- endfor %}{{ '<|im_start|>assistant<|im_sep|>' if ask }})"},
    {"rwkv-world", R"(
{%- for m in messages %}
{%- if m.role == 'system' %}{{ 'System: ' ~ bare(m) ~ '\n\n' }}
{%- elif m.role == 'user' %}{{ 'User: ' ~ bare(m) ~ '\n\n' ~ ('Assistant:' if loop.last else '') }}
{%- elif m.role == 'assistant' %}{{ 'Assistant: ' ~ bare(m) ~ '\n\n' }}
{%- endif %}
{%- endfor %})"},
    {"seed_oss", R"(
{%- for m in messages %}
{{- '<seed:bos>' ~ m.role ~ '\n' ~ (bare(m) if m.role == 'assistant' else text(m)) }}
{{- '<seed:eos>' }}
{%- endfor %}{{ '<seed:bos>assistant\n' if ask }})"},
    {"smolvlm", R"(
{{- '<|im_start|>' }}
{%- for m in messages %}
{%- if m.role == 'system' %}{{ text(m) ~ '\n\n' }}
{%- else %}
{{- ('User: ' if m.role == 'user' else 'Assistant: ') ~ text(m) ~ '<end_of_utterance>\n' }}
{%- endif %}
{%- endfor %}{{ 'Assistant:' if ask }})"},
    {"solar-open", R"(
{%- for m in messages %}{{ '<|begin|>' ~ m.role ~ '<|content|>' ~ text(m) ~ '<|end|>' }}
{%- endfor %}{{ '<|begin|>assistant' if ask }})"},
    {"yandex", R"(
{%- set user = ' \u041f\u043e\u043b\u044c\u0437\u043e\u0432\u0430\u0442\u0435\u043b\u044c:' %}
{%- set helper = ' \u0410\u0441\u0441\u0438\u0441\u0442\u0435\u043d\u0442:' %}
{%- for m in messages %}
{%- if m.role == 'user' %}{{ user ~ ' ' ~ text(m) ~ '\n\n' }}
{%- elif m.role == 'assistant' %}{{ helper ~ ' ' ~ text(m) ~ '\n\n' }}
{%- endif %}
{%- endfor %}{{ helper ~ '[SEP]' if ask }})"},
});

static_assert(std::ranges::is_sorted(kFamilies, {}, &Shared::name));
static_assert(std::ranges::is_sorted(kSingles, {}, &Row::name));

}  // namespace

std::optional<std::string> named_template(std::string_view name) {
  std::string out(kShared);
  if (const auto* row = std::ranges::find(kFamilies, name, &Shared::name); row != kFamilies.end()) {
    return out.append(row->settings).append(row->source);
  }
  if (const auto* row = std::ranges::find(kSingles, name, &Row::name); row != kSingles.end()) {
    return out.append(row->source);
  }
  return std::nullopt;
}

std::vector<std::string_view> template_names() {
  std::vector<std::string_view> names;
  for (const Shared& row : kFamilies) names.push_back(row.name);
  for (const Row& row : kSingles) names.push_back(row.name);
  std::ranges::sort(names);
  return names;
}

}  // namespace godwit::chat
