#include "chat/jinja/parser.h"

#include <initializer_list>

#include "chat/jinja/expression_parser.h"
#include "chat/jinja/token_stream.h"

namespace godwit::chat::jinja {

namespace {

class Parser {
 public:
  explicit Parser(std::string_view source)
      : tokens_(tokenize(source)), expressions_(tokens_, ast_) {}

  Ast run() {
    ast_.body = body({});
    return std::move(ast_);
  }

 private:
  const Stmt* make(int line, decltype(Stmt::node) node) {
    return &ast_.stmts.emplace_back(Stmt{.node = std::move(node), .line = line});
  }

  // Statements up to a tag with one of these names, which becomes the current token. No names: up
  // to the end of the template.
  Body body(std::initializer_list<std::string_view> ends) {
    const ParseLevel level(expressions_.depth(), tokens_.current());
    const Token opening = tokens_.current();
    Body out;
    while (!tokens_.is(TokenKind::kEnd)) {
      const int line = tokens_.current().line;
      if (tokens_.is(TokenKind::kData)) {
        out.push_back(make(line, DataNode{Text(tokens_.next().text)}));
      } else if (tokens_.is(TokenKind::kVariableBegin)) {
        tokens_.next();
        ExprRef value = expressions_.tuple(ExpressionParser::Commas::kExpression);
        tokens_.expect(TokenKind::kVariableEnd, "'}}'");
        out.push_back(make(line, OutputNode{value}));
      } else {
        tokens_.expect(TokenKind::kBlockBegin, "'{%'");
        for (std::string_view end : ends) {
          if (tokens_.is_name(end)) {
            return out;
          }
        }
        statement(out);
        tokens_.expect(TokenKind::kBlockEnd, "'%}'");
      }
    }
    if (ends.size() > 0) {
      TokenStream::error(
          opening, fmt::format("expected '{}' before the end of the template", *(ends.end() - 1)));
    }
    return out;
  }

  // The rest of the tag that opens a body, the body, and the name of the tag that ends it.
  Body block(std::initializer_list<std::string_view> ends) {
    tokens_.expect(TokenKind::kBlockEnd, "'%}'");
    return body(ends);
  }
  Body block(std::string_view end) {
    Body out = block({end});
    tokens_.next();
    return out;
  }

  void statement(Body& out) {
    const Token token = tokens_.expect(TokenKind::kName, "the name of a tag");
    const std::string& tag = token.text;
    if (tag == "if") {
      out.push_back(if_statement(token));
    } else if (tag == "for") {
      out.push_back(for_statement(token));
    } else if (tag == "set") {
      out.push_back(set_statement(token));
    } else if (tag == "macro") {
      out.push_back(macro_statement(token));
    } else if (tag == "call") {
      out.push_back(call_statement(token));
    } else if (tag == "filter") {
      ExprRef filter = expressions_.filters(nullptr, true);
      out.push_back(make(token.line, FilterBlockNode{filter, block("endfilter")}));
    } else if (tag == "with") {
      out.push_back(with_statement(token));
    } else if (tag == "generation") {
      const LoopPause pause(*this);
      out.push_back(make(token.line, WithNode{{}, block("endgeneration")}));
    } else if (tag == "print") {
      print_statement(token, out);
    } else if (tag == "break" || tag == "continue") {
      out.push_back(jump_statement(token));
    } else {
      refuse(token);
    }
  }

  [[noreturn]] static void refuse(const Token& token) {
    for (std::string_view known : {"include", "import", "from", "extends", "block", "autoescape"}) {
      if (token.text == known) {
        TokenStream::error(
            token, fmt::format("'{}' is not supported: a chat template stands alone", token.text));
      }
    }
    TokenStream::error(token, fmt::format("unknown tag '{}'", token.text.substr(0, 40)));
  }

  const Stmt* if_statement(const Token& token) {
    IfNode node;
    do {
      ExprRef condition = expressions_.tuple(ExpressionParser::Commas::kExpression);
      node.branches.emplace_back(condition, block({"elif", "else", "endif"}));
    } while (tokens_.skip_name("elif"));
    if (tokens_.skip_name("else")) {
      node.otherwise = block({"endif"});
    }
    tokens_.next();
    return make(token.line, std::move(node));
  }

  const Stmt* for_statement(const Token& token) {
    ForNode node;
    node.target = target(AssignTo::kNames);
    tokens_.expect_name("in");
    node.iterable = expressions_.tuple(ExpressionParser::Commas::kLoop);
    node.filter = tokens_.skip_name("if") ? expressions_.expression() : nullptr;
    node.recursive = tokens_.skip_name("recursive");
    ++loops_;
    node.body = block({"else", "endfor"});
    --loops_;
    if (tokens_.skip_name("else")) {
      node.otherwise = block({"endfor"});
    }
    tokens_.next();
    return make(token.line, std::move(node));
  }

  const Stmt* set_statement(const Token& token) {
    Target to = target(AssignTo::kNamespaces);
    if (tokens_.skip_operator("=")) {
      ExprRef value = expressions_.tuple(ExpressionParser::Commas::kExpression);
      return make(token.line, SetNode{std::move(to), value});
    }
    const Expr* filter = expressions_.filters(nullptr, false);
    return make(token.line, SetBlockNode{std::move(to), filter, block("endset")});
  }

  enum class AssignTo { kNames, kNamespaces };
  Target target(AssignTo what) {
    Target first = single_target(what);
    if (!tokens_.is_operator(",")) {
      return first;
    }
    Target out{.name = "", .attribute = "", .parts = {}, .is_tuple = true};
    out.parts.push_back(std::move(first));
    while (tokens_.skip_operator(",") &&
           (tokens_.is(TokenKind::kName) || tokens_.is_operator("(")) && !tokens_.is_name("in")) {
      out.parts.push_back(single_target(what));
    }
    return out;
  }

  Target single_target(AssignTo what) {
    const ParseLevel level(expressions_.depth(), tokens_.current());
    if (tokens_.skip_operator("(")) {
      Target out = target(what);
      tokens_.expect_operator(")");
      return out;
    }
    Target out{.name = assignable_name(), .attribute = "", .parts = {}, .is_tuple = false};
    if (what == AssignTo::kNamespaces && tokens_.skip_operator(".")) {
      out.attribute = tokens_.expect(TokenKind::kName, "a name").text;
    }
    return out;
  }

  std::string assignable_name() {
    const Token& token = tokens_.expect(TokenKind::kName, "a name to assign to");
    for (std::string_view constant : {"true", "false", "none", "True", "False", "None"}) {
      if (token.text == constant) {
        TokenStream::error(token, fmt::format("cannot assign to '{}'", constant));
      }
    }
    return token.text;
  }

  void signature(MacroNode& macro) {
    tokens_.expect_operator("(");
    while (!tokens_.is_operator(")")) {
      const Token token = tokens_.current();
      macro.parameters.push_back(assignable_name());
      if (tokens_.skip_operator("=")) {
        macro.defaults.push_back(expressions_.expression());
      } else if (!macro.defaults.empty()) {
        TokenStream::error(token, "a parameter without a default follows one with a default");
      }
      if (!tokens_.skip_operator(",")) {
        break;
      }
    }
    tokens_.expect_operator(")");
  }

  // break and continue do not reach out of a macro's body.
  class LoopPause {
   public:
    explicit LoopPause(Parser& parser) : parser_(parser), loops_(parser.loops_) {
      parser_.loops_ = 0;
    }
    ~LoopPause() { parser_.loops_ = loops_; }
    LoopPause(const LoopPause&) = delete;
    LoopPause& operator=(const LoopPause&) = delete;

   private:
    Parser& parser_;
    int loops_;
  };

  void macro_body(MacroNode& macro, std::string_view end) {
    const LoopPause pause(*this);
    expressions_.macros().push_back(&macro);
    macro.body = block(end);
    expressions_.macros().pop_back();
  }

  const Stmt* macro_statement(const Token& token) {
    MacroNode& macro = ast_.macros.emplace_back();
    macro.name = assignable_name();
    signature(macro);
    macro_body(macro, "endmacro");
    return make(token.line, MacroStmt{&macro});
  }

  const Stmt* call_statement(const Token& token) {
    MacroNode& caller = ast_.macros.emplace_back();
    caller.name = "caller";
    if (tokens_.is_operator("(")) {
      signature(caller);
    }
    const Token at = tokens_.current();
    ExprRef call = expressions_.expression();
    if (!std::holds_alternative<Call>(call->node)) {
      TokenStream::error(at, "expected a call");
    }
    macro_body(caller, "endcall");
    return make(token.line, CallBlockNode{call, &caller});
  }

  const Stmt* with_statement(const Token& token) {
    WithNode node;
    while (!tokens_.is(TokenKind::kBlockEnd)) {
      if (!node.variables.empty()) {
        tokens_.expect_operator(",");
      }
      Target to = single_target(AssignTo::kNames);
      tokens_.expect_operator("=");
      node.variables.emplace_back(std::move(to), expressions_.expression());
    }
    node.body = block("endwith");
    return make(token.line, std::move(node));
  }

  void print_statement(const Token& token, Body& out) {
    while (!tokens_.is(TokenKind::kBlockEnd)) {
      out.push_back(make(token.line, OutputNode{expressions_.expression()}));
      if (!tokens_.skip_operator(",")) {
        break;
      }
    }
  }

  const Stmt* jump_statement(const Token& token) {
    if (loops_ == 0) {
      TokenStream::error(token, fmt::format("'{}' outside of a loop", token.text));
    }
    return make(token.line, JumpNode{token.text == "break" ? Jump::kBreak : Jump::kContinue});
  }

  Ast ast_;
  TokenStream tokens_;
  ExpressionParser expressions_;
  int loops_ = 0;  // loops around the current statement, within its macro
};

}  // namespace

Ast parse(std::string_view source) { return Parser(source).run(); }

}  // namespace godwit::chat::jinja
