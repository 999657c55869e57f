// The grammar of expressions. The statement parser uses it for everything inside a tag.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/ast.h"
#include "chat/jinja/token_stream.h"

namespace godwit::chat::jinja {

// One level of nested parsing for as long as it lives.
class ParseLevel {
 public:
  ParseLevel(int& depth, const Token& at);
  ~ParseLevel() { --depth_; }
  ParseLevel(const ParseLevel&) = delete;
  ParseLevel& operator=(const ParseLevel&) = delete;

 private:
  int& depth_;
};

class ExpressionParser {
 public:
  ExpressionParser(TokenStream& tokens, Ast& ast) : tokens_(tokens), ast_(ast) {}

  ExprRef expression();
  // Without the inline if: what stands between `in` and `if` of a for.
  ExprRef expression_or();
  // One expression, or several with commas: a tuple. In a for, `recursive` ends it as well.
  enum class Commas { kExpression, kLoop };
  ExprRef tuple(Commas where);
  // name | filter | filter(arguments), from the first name on. `input` may be null.
  const Expr* filters(const Expr* input, bool at_first_name);

  int& depth() { return depth_; }
  // Macros being parsed: they learn which special names their bodies use.
  std::vector<MacroNode*>& macros() { return macros_; }

 private:
  ExprRef make(int line, decltype(Expr::node) node);
  ExprRef logic_and();
  ExprRef logic_not();
  ExprRef comparison();
  ExprRef sum();
  ExprRef concatenation();
  ExprRef product();
  ExprRef power();
  ExprRef unary(bool with_filters);
  ExprRef primary();
  ExprRef number();
  ExprRef string();
  ExprRef name();
  ExprRef parenthesised();
  ExprRef list();
  ExprRef dict();
  ExprRef postfix(ExprRef expr);
  ExprRef postfix_filters(ExprRef expr);
  ExprRef attribute(ExprRef object);
  ExprRef subscript(ExprRef object);
  ExprRef subscript_item();
  ExprRef call(ExprRef callee);
  CallArguments arguments();
  void argument(CallArguments& out);
  ExprRef test(ExprRef input);
  std::string dotted_name();
  bool at_tuple_end(Commas where) const;

  TokenStream& tokens_;
  Ast& ast_;
  int depth_ = 0;
  std::vector<MacroNode*> macros_;
};

}  // namespace godwit::chat::jinja
