// What came from outside must stay marked, whatever a template does with it.
#include <gtest/gtest.h>

#include <algorithm>

#include "chat/chat_fixture.h"

namespace godwit::chat {
namespace {

MarkedText render_marked(const std::string& source, const RenderInput& input) {
  auto parsed = Template::parse(source);
  EXPECT_TRUE(parsed) << source;
  if (!parsed) {
    return {};
  }
  auto out = parsed->render(input);
  EXPECT_TRUE(out) << source << "\n" << out.error().message;
  return out ? *out : MarkedText{};
}

// The text with each marked range in brackets.
std::string shown(const MarkedText& text) {
  std::string out;
  std::size_t at = 0;
  for (const TextRange& range : text.user_ranges) {
    out += text.text.substr(at, range.begin - at) + "[" +
           text.text.substr(range.begin, range.end - range.begin) + "]";
    at = range.end;
  }
  return out + text.text.substr(at);
}

void expect_well_formed(const MarkedText& text) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < text.user_ranges.size(); ++i) {
    const TextRange& range = text.user_ranges[i];
    EXPECT_LT(range.begin, range.end);
    EXPECT_TRUE(i == 0 ? range.begin >= at : range.begin > at) << "ranges that touch are merged";
    at = range.end;
  }
  EXPECT_LE(at, text.text.size());
}

bool is_marked(const MarkedText& text, std::size_t begin, std::size_t end) {
  return std::any_of(text.user_ranges.begin(), text.user_ranges.end(),
                     [&](const TextRange& r) { return r.begin <= begin && end <= r.end; });
}

struct MarkRow {
  std::string source;
  std::string shown;
};

// u is "<Us>" from outside; everything else in a row is the template's.
TEST(ChatMarks, FollowTheBytesThroughEveryOperation) {
  const std::vector<MarkRow> rows = {
      {"a{{ u }}b", "a[<Us>]b"},
      {"{{ 'a' + u + 'b' }}", "a[<Us>]b"},
      {"{{ 'a' ~ u ~ u ~ 1 }}", "a[<Us><Us>]1"},
      {"{{ u * 2 }}", "[<Us><Us>]"},
      {"{{ ('-' + u + '-')[1:3] }}", "[<U]"},
      {"{{ ('-' + u + '-')[:3] }}", "-[<U]"},
      {"{{ ('-' + u + '-')[::-1] }}", "-[>sU<]-"},
      {"{{ ('-' + u)[0] }}{{ ('-' + u)[2] }}", "-[U]"},
      {"{{ ('-' + u + '-')|upper }}", "-[<US>]-"},
      {"{{ ('A' + u).lower() }}", "a[<us>]"},
      {"{{ ('A' + u)|title }}{{ ('a' + u).title() }}", "A[<Us>]A[<Us>]"},
      {"{{ (' ' + u + ' ')|trim }}", "[<Us>]"},
      {"{{ ('x' + u + 'x').strip('x') }}", "[<Us>]"},
      {"{{ ('x' + u).replace('x', 'y') }}", "y[<Us>]"},
      {"{{ 'axb'.replace('x', u) }}", "a[<Us>]b"},
      {"{{ u|replace('U', 'V') }}", "[<]V[s>]"},
      {"{{ [u, 'b', u]|join(',') }}", "[<Us>],b,[<Us>]"},
      {"{{ u.join(['a', 'b']) }}", "a[<Us>]b"},
      {"{{ ('a,' + u).split(',')[1] }}", "[<Us>]"},
      {"{{ ('a ' + u + ' b').split() }}", "['a', '[<Us>]', 'b']"},
      {"{{ ('a\\n' + u).splitlines()|last }}", "[<Us>]"},
      {"{{ ('a-' + u).partition('-')|last }}", "[<Us>]"},
      {"{{ '%s!' % u }}", "[<Us>]!"},
      {"{{ '%6s|%-6s|' % (u, u) }}", "  [<Us>]|[<Us>]  |"},
      {"{{ '%s'|format(u) }}", "[<Us>]"},
      {"{{ '{}-{:>6}'.format(u, u) }}", "[<Us>]-  [<Us>]"},
      {"{{ u|tojson }}", "\"[<Us>]\""},
      {"{{ {'k': u}|tojson }}", "{\"k\": \"[<Us>]\"}"},
      {"{{ [u] }}{{ {'k': u} }}", "['[<Us>]']{'k': '[<Us>]'}"},
      {"{{ q|tojson }}", "\"[\\\"\\n]\""},
      {"{{ u|e }}", "[&lt;Us&gt;]"},
      {"{{ ('a\\n' + u)|indent(1) }}", "a\n [<Us>]"},
      {"{{ u|center(6) }}", " [<Us>] "},
      {
          "{{ ('a' + u)|truncate(4, true, '..', 0) }}",
          "a[<]..",
      },
      {"{{ u|reverse }}{{ u|list|join }}", "[>sU<<Us>]"},
      {"{% for c in u %}{{ c }}.{% endfor %}", "[<].[U].[s].[>]."},
      {"{{ u|first }}{{ u|last }}", "[<>]"},
      {"{% set x %}a{{ u }}{% endset %}{{ x }}", "a[<Us>]"},
      {"{% macro m(x) %}({{ x }}){% endmacro %}{{ m(u) }}", "([<Us>])"},
      {"{% filter upper %}a{{ u }}{% endfilter %}", "A[<US>]"},
      {"{% set n = namespace(x='') %}{% set n.x = n.x ~ u %}{{ n.x }}", "[<Us>]"},
      {"{{ u|string|safe|default('x') }}", "[<Us>]"},
      {"{{ d.keys()|first }}{{ d.key }}", "[keyvalue]"},
      {"{{ d|tojson }}", "{\"[key]\": \"[value]\"}"},
      {"{{ d }}", "{'[key]': '[value]'}"},
      {"{{ u == '<Us>' }}{{ {'<Us>': 1}[u] }}{{ u|length }}", "True14"},
      {"{{ u|urlencode }}", "[%3CUs%3E]"},
      {"{{ [u, 'a']|sort|first }}{{ [u, u]|unique|list }}", "[<Us>]['[<Us>]']"},
      {"{{ (u ~ 'a').zfill(7) }}", "00[<Us>]a"},
      {"{{ ('a' + u).removeprefix('a').removesuffix('>') }}", "[<Us]"},
      {"{{ ('a' + u).swapcase() }}{{ (u + 'A').capitalize() }}", "A[<uS><us>]a"},
  };
  const RenderInput input{.messages_json = "[]",
                          .extra_json = R"({"u": "<Us>", "q": "\"\n", "d": {"key": "value"}})"};
  for (const MarkRow& row : rows) {
    const MarkedText out = render_marked(row.source, input);
    expect_well_formed(out);
    EXPECT_EQ(shown(out), row.shown) << row.source;
  }
}

TEST(ChatMarks, TokensOfTheTemplateAreNotMarked) {
  const MarkedText out = render_marked(
      "{{ bos_token }}<|im_start|>{% for m in messages %}{{ m.content }}{% endfor %}{{ eos_token "
      "}}",
      {.messages_json = R"([{"role": "user", "content": "<s>"}])",
       .bos_token = "<s>",
       .eos_token = "</s>"});
  EXPECT_EQ(shown(out), "<s><|im_start|>[<s>]</s>");
}

// Every fixture: a special token within a message is marked where it comes out, and the output
// has as many unmarked ones as with harmless messages.
TEST(ChatMarks, ContentCannotWriteSpecialTokens) {
  constexpr std::string_view kToken = "<|evil|>";
  std::size_t n_seen = 0;
  for (const OrderedJson& fixture : model_fixtures()) {
    const auto parsed = Template::parse(fixture["template"].get<std::string>());
    ASSERT_TRUE(parsed);
    for (const OrderedJson& conversation : fixture["cases"]) {
      OrderedJson hostile = conversation;
      for (OrderedJson& message : hostile["messages"]) {
        if (message["content"].is_string()) {
          message["content"] = " <|evil|>" + message["content"].get<std::string>() + "<|evil|>\n";
        }
      }
      const auto out = parsed->render(render_input(fixture, hostile));
      if (!out) {
        continue;
      }
      expect_well_formed(*out);
      for (std::size_t at = out->text.find(kToken); at != std::string::npos;
           at = out->text.find(kToken, at + 1)) {
        EXPECT_TRUE(is_marked(*out, at, at + kToken.size()))
            << fixture["model"] << ": " << conversation["name"] << " at " << at;
        ++n_seen;
      }
    }
  }
  EXPECT_GT(n_seen, 200U);
}

}  // namespace
}  // namespace godwit::chat
