// Templates and inputs that mean harm: every one ends soon, with an error that says why.
#include <gtest/gtest.h>

#include "chat/chat_fixture.h"

namespace godwit::chat {
namespace {

std::string repeated(std::string_view part, std::size_t n) {
  std::string out;
  for (std::size_t i = 0; i < n; ++i) {
    out += part;
  }
  return out;
}

// Less than by default keeps the test short.
const RenderInput kNoMessages{
    .messages_json = "[]",
    .limits = {.max_steps = 2'000'000, .max_bytes = 32 << 20, .max_output_bytes = 8 << 20}};

struct BoundRow {
  std::string name;
  std::string source;
  std::string error;  // what the message holds
};

std::vector<BoundRow> bound_rows() {
  const std::string ten = "{% for a in range(100000) %}";
  return {
      {"loops in loops", ten + ten + ten + "{% endfor %}{% endfor %}{% endfor %}", "more than"},
      {"endless recursion", "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "levels deep"},
      {"mutual recursion",
       "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
       "levels deep"},
      {"recursion through a call block",
       "{% macro a() %}{% call a() %}{{ caller() }}{% endcall %}{% endmacro %}{{ a() }}",
       "levels deep"},
      {"recursive loop",
       "{% set n = namespace() %}{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
       "levels deep"},
      {"doubling text",
       "{% set n = namespace(s='ab') %}{% for i in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor "
       "%}",
       "bytes of memory"},
      {"doubling list",
       "{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor "
       "%}",
       "bytes of memory"},
      {"long repetition", "{{ 'abc' * 9223372036854775807 }}", "more than"},
      {"long list repetition", "{{ [1] * 9223372036854775807 }}", "bytes of memory"},
      {"wide column", "{{ 'a'.ljust(9223372036854775807) }}", "more than"},
      {"wide indent", "{{ ([1] * 99999)|tojson(indent=999999999) }}", "bytes of memory"},
      {"wide format", "{{ '%999999999d' % 1 }}", "width or precision"},
      {"precise format", "{{ '{:.999999999f}'.format(1.5) }}", "width or precision"},
      {"replace everywhere", "{{ ('a' * 1000000)|replace('', 'b' * 1000) }}", "bytes of memory"},
      {"wide wrapping", "{{ ('a ' * 100000)|wordwrap(1, wrapstring='b' * 10000) }}",
       "bytes of memory"},
      {"long lines wrapped", "{{ ('a' * 9000000)|wordwrap(9223372036854775807) }}", "more than"},
      {"wide indent of lines", "{{ ('\n' * 100000)|indent(1000000, true, true) }}",
       "bytes of memory"},
      {"shared value laid out",
       "{% set n = namespace(v=[1]) %}{% for i in range(60) %}{% set n.v = [n.v, n.v] %}{% endfor "
       "%}{{ n.v|pprint }}",
       "more than"},
      {"wide keys laid out",
       "{% set n = namespace(v=['a' * 99] * 9) %}{% for i in range(9) %}{% set n.v = {'k' * "
       "900000: "
       "n.v} %}{% endfor %}{{ n.v|pprint }}",
       "more than"},
      {"long links", "{{ ('http://a.com ' * 10000)|urlize(rel='x' * 10000) }}", "bytes of memory"},
      {"links without end", "{{ ('a.b@' * 8000000)|urlize }}", "more than"},
      {"words without end", "{{ ('a ' * 2000000).split()|length }}", "more than"},
      {"letters without end", "{{ ('a' * 2000000)|list|length }}", "more than"},
      {"wide batch", "{{ [1]|batch(1000000000, 0)|list }}", "bytes of memory"},
      {"many slices", "{{ [1]|slice(1000000000)|list }}", "bytes of memory"},
      {"wide join", "{{ range(100000)|join('x' * 100000) }}", "bytes of memory"},
      {"wide centre", "{{ 'a'|center(1000000000) }}", "more than"},
      {"big sort", "{{ (range(100000)|list * 300)|sort|length }}", "bytes of memory"},
      {"quadratic unique", "{{ range(100000)|unique|list|length }}", "steps"},
      {"deep attributes", "{{ [{}]|map(attribute='" + repeated("a.", 100000) + "a')|list }}",
       "has no attribute"},
      {"chance", "{{ [1, 2]|random }}", "random is not supported"},
      {"range", "{{ range(100001) }}", "Range too big"},
      {"range across all integers", "{{ range(-9223372036854775807, 9223372036854775807) }}",
       "Range too big"},
      {"nested value",
       "{% set n = namespace(v=[]) %}{% for i in range(9999) %}{% set n.v = [n.v] %}{% endfor %}",
       "nested more than"},
      {"value that holds itself", "{% set n = namespace() %}{% set n.self = [n] %}{{ n }}",
       "levels deep"},
      {"value that equals itself", "{% set a = namespace() %}{% set a.x = [a] %}{{ a.x }}",
       "levels deep"},
      {"shared value printed",
       "{% set n = namespace(v=[1]) %}{% for i in range(60) %}{% set n.v = [n.v, n.v] %}{% endfor "
       "%}{{ n.v }}",
       "more than"},
      {"shared value compared",
       "{% set n = namespace(v=[1], w=[1]) %}{% for i in range(60) %}{% set n.v = [n.v, n.v] %}{% "
       "set n.w = [n.w, n.w] %}{% endfor %}{{ n.v == n.w }}",
       "steps"},
      {"shared value as a key",
       "{% set n = namespace(v=(1,)) %}{% for i in range(60) %}{% set n.v = (n.v, n.v) %}{% endfor "
       "%}{{ {n.v: 1} }}",
       "more than"},
      {"shared value as an unknown key",
       "{% set n = namespace(v=(1,)) %}{% for i in range(60) %}{% set n.v = (n.v, n.v) %}{% endfor "
       "%}{{ {}.get(n.v) }}",
       "more than"},
      {"long attribute of nothing",
       "{% set a = 'a.' * 100000 %}{% for i in range(99999) %}{% set b = []|map(attribute=a) %}"
       "{% endfor %}",
       "more than"},
      {"long output", "{% set a = 'a' * 1000000 %}{% for i in range(99) %}{{ a }}{% endfor %}",
       "output is longer"},
      {"integer overflow", "{{ 9223372036854775807 + 1 }}", "64 bits"},
      {"negation overflow", "{{ -(-9223372036854775807 - 1) }}", "64 bits"},
      {"power overflow", "{{ 10 ** 99 }}", "64 bits"},
      {"division overflow", "{{ (-9223372036854775807 - 1) // -1 }}", "64 bits"},
      {"literal overflow", "{{ 9223372036854775808 }}", "64 bits"},
      {"parentheses", "{{ " + repeated("(", 5000) + "1" + repeated(")", 5000) + " }}",
       "levels deep"},
      {"lists", "{{ " + repeated("[", 5000) + repeated("]", 5000) + " }}", "levels deep"},
      {"signs", "{{ " + repeated("-", 5000) + "1 }}", "levels deep"},
      {"nots", "{{ " + repeated("not ", 5000) + "1 }}", "levels deep"},
      {"ifs", repeated("{% if 1 %}", 5000) + repeated("{% endif %}", 5000), "levels deep"},
      {"conditionals", "{{ " + repeated("1 if 0 else ", 5000) + "1 }}", "levels deep"},
      {"targets", "{% set " + repeated("(", 5000) + "a" + repeated(")", 5000) + " = 1 %}",
       "levels deep"},
      {"sums", "{{ 1" + repeated("+1", 100000) + " }}", "levels deep"},
      {"subscripts", "{{ a" + repeated("[0]", 100000) + " }}", "levels deep"},
      {"filters", "{{ a" + repeated("|e", 100000) + " }}", "levels deep"},
      {"long source", repeated("a", (1 << 20) + 1), "bytes of template"},
      {"not UTF-8", "a\xff", "UTF-8"},
  };
}

TEST(ChatBounds, HostileTemplatesEndWithAnError) {
  for (const BoundRow& row : bound_rows()) {
    const std::string out = rendered(row.source, kNoMessages);
    EXPECT_TRUE(out.starts_with("error: chat template: ")) << row.name << ": " << out.substr(0, 80);
    EXPECT_NE(out.find(row.error), std::string::npos) << row.name << ": " << out.substr(0, 200);
  }
}

// Each step may look at a text: what it costs must grow with the text.
TEST(ChatBounds, LongTextsTakeStepsByTheirLength) {
  for (const char* loop :
       {"x|upper", "x|title", "x|length", "x[9]", "x[1:2]", "x|tojson", "[x]|string", "x|wordcount",
        "x|truncate(9)", "x|reverse", "x|e", "x|center(9)", "x|urlencode", "x is lower",
        "x|striptags", "x|urlize", "x|wordwrap", "x|pprint", "x.find('y')"}) {
    const std::string out =
        rendered("{% set x = '\u00e4b' * 300000 %}{% for i in range(100000) %}{% set y = " +
                     std::string(loop) + " %}{% endfor %}",
                 kNoMessages);
    EXPECT_NE(out.find("more than"), std::string::npos) << loop << ": " << out.substr(0, 200);
  }
}

// A needle that nearly matches everywhere: what the search costs must not be the product of the
// lengths, which would take hours here.
TEST(ChatBounds, LongNeedlesTakeStepsByTheirLength) {
  for (const char* search :
       {"n in x", "x.find(n)", "x.rfind(n)", "x.count(n)", "x.split(n)", "x.rsplit(n)",
        "x.partition(n)", "x.rpartition(n)", "x.replace(n, 'y')", "x|replace(n, 'y')",
        "x.startswith((n,) * 999)", "x.endswith((n,) * 999)", "x.removeprefix(n)",
        "x.removesuffix(n)", "x is in (n + x)"}) {
    const std::string out = rendered(
        "{% set x = 'a' * 1000000 %}{% set n = 'a' * 500000 ~ 'b' %}"
        "{% for i in range(100000) %}{% set y = " +
            std::string(search) + " %}{% endfor %}",
        kNoMessages);
    EXPECT_NE(out.find("more than"), std::string::npos) << search << ": " << out.substr(0, 200);
  }
}

TEST(ChatBounds, NamespacesThatHoldThemselvesAreFreed) {
  // The leak checker of the sanitizer builds looks at this.
  EXPECT_EQ(rendered("{% set n = namespace() %}{% set n.me = n %}{% set n.list = [n, [n]] %}"
                     "{% macro m() %}{{ n.list|length }}{% endmacro %}{% set n.m = m %}{{ n.m() }}",
                     kNoMessages),
            "2");
}

TEST(ChatBounds, InputsAreChecked) {
  const auto error_of = [](RenderInput input) { return rendered("{{ messages }}", input); };
  EXPECT_EQ(error_of({.messages_json = ""}).substr(0, 43),
            "error: chat template: messages: not valid J");
  EXPECT_EQ(error_of({.messages_json = "{}"}),
            "error: chat template: messages: expected a JSON array, found dict");
  EXPECT_EQ(error_of({.messages_json = "[]", .tools_json = "[1"}).substr(0, 40),
            "error: chat template: tools: not valid J");
  EXPECT_EQ(error_of({.messages_json = "[]", .extra_json = "[]"}),
            "error: chat template: extra variables: expected a JSON object, found list");
  EXPECT_NE(error_of({.messages_json = repeated("[", 100000)}).find("levels deep"),
            std::string::npos);
  EXPECT_NE(error_of({.messages_json = "[18446744073709551615]"}).find("64 bits"),
            std::string::npos);
  EXPECT_NE(error_of({.messages_json = "[123456789012345678901234567890]"}).find("64 bits"),
            std::string::npos);
  EXPECT_NE(error_of({.messages_json = "[\"\xff\"]"}).find("not valid JSON"), std::string::npos);
}

TEST(ChatBounds, ManyKeysStayFast) {
  std::string json = "[{";
  for (int i = 0; i < 200000; ++i) {
    json += "\"k" + std::to_string(i) + "\": 1,";
  }
  json += "\"last\": 2}]";
  EXPECT_EQ(rendered("{{ messages[0]|length }}{{ messages[0].last }}", {.messages_json = json}),
            "2000012");
}

TEST(ChatBounds, AKeyThatComesAgainTakesTheLaterValue) {
  EXPECT_EQ(rendered("{{ messages[0] }}", {.messages_json = R"([{"a": 1, "b": 2, "a": 3}])"}),
            "{'a': 3, 'b': 2}");
}

TEST(ChatBounds, LongConversationsFit) {
  OrderedJson messages = OrderedJson::array();
  for (int i = 0; i < 2000; ++i) {
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"},
                        {"content", std::string(1000, static_cast<char>('a' + i % 26))}});
  }
  for (const OrderedJson& fixture : model_fixtures()) {
    const std::string out =
        rendered(fixture["template"], render_input(fixture, {{"messages", messages}}));
    EXPECT_FALSE(out.starts_with("error: ")) << fixture["model"] << ": " << out.substr(0, 200);
    EXPECT_GT(out.size(), 2000000U);
  }
}

}  // namespace
}  // namespace godwit::chat
