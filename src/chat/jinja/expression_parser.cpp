#include "chat/jinja/expression_parser.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

namespace godwit::chat::jinja {

namespace {

std::optional<CompareOp> compare_op(const Token& token) {
  constexpr auto kOps =
      std::to_array<std::pair<std::string_view, CompareOp>>({{"==", CompareOp::kEqual},
                                                             {"!=", CompareOp::kNotEqual},
                                                             {"<", CompareOp::kLess},
                                                             {"<=", CompareOp::kLessEqual},
                                                             {">", CompareOp::kGreater},
                                                             {">=", CompareOp::kGreaterEqual}});
  for (const auto& [text, op] : kOps) {
    if (token.kind == TokenKind::kOperator && token.text == text) {
      return op;
    }
  }
  return std::nullopt;
}

std::optional<BinaryOp> product_op(const Token& token) {
  constexpr auto kOps =
      std::to_array<std::pair<std::string_view, BinaryOp>>({{"*", BinaryOp::kMultiply},
                                                            {"/", BinaryOp::kDivide},
                                                            {"//", BinaryOp::kFloorDivide},
                                                            {"%", BinaryOp::kModulo}});
  for (const auto& [text, op] : kOps) {
    if (token.kind == TokenKind::kOperator && token.text == text) {
      return op;
    }
  }
  return std::nullopt;
}

}  // namespace

ParseLevel::ParseLevel(int& depth, const Token& at) : depth_(depth) {
  if (depth_ >= kMaxParseDepth) {
    TokenStream::error(at, fmt::format("nested more than {} levels deep", kMaxParseDepth));
  }
  ++depth_;
}

ExprRef ExpressionParser::make(int line, decltype(Expr::node) node) {
  return &ast_.exprs.emplace_back(Expr{.node = std::move(node), .line = line});
}

ExprRef ExpressionParser::expression() {
  const ParseLevel level(depth_, tokens_.current());
  ExprRef then = expression_or();
  while (tokens_.is_name("if")) {
    const int line = tokens_.next().line;
    ExprRef condition = expression_or();
    const Expr* otherwise = tokens_.skip_name("else") ? expression() : nullptr;
    then = make(line, Conditional{condition, then, otherwise});
  }
  return then;
}

ExprRef ExpressionParser::expression_or() {
  ExprRef left = logic_and();
  while (tokens_.is_name("or")) {
    const int line = tokens_.next().line;
    left = make(line, Logic{LogicOp::kOr, left, logic_and()});
  }
  return left;
}

ExprRef ExpressionParser::logic_and() {
  ExprRef left = logic_not();
  while (tokens_.is_name("and")) {
    const int line = tokens_.next().line;
    left = make(line, Logic{LogicOp::kAnd, left, logic_not()});
  }
  return left;
}

ExprRef ExpressionParser::logic_not() {
  if (!tokens_.is_name("not")) {
    return comparison();
  }
  const ParseLevel level(depth_, tokens_.current());
  const int line = tokens_.next().line;
  return make(line, Unary{UnaryOp::kNot, logic_not()});
}

ExprRef ExpressionParser::comparison() {
  const int line = tokens_.current().line;
  Compare compare{.first = sum(), .rest = {}};
  while (true) {
    const Token& look = tokens_.look();
    if (const auto op = compare_op(tokens_.current())) {
      tokens_.next();
      compare.rest.emplace_back(*op, sum());
    } else if (tokens_.skip_name("in")) {
      compare.rest.emplace_back(CompareOp::kIn, sum());
    } else if (tokens_.is_name("not") && look.kind == TokenKind::kName && look.text == "in") {
      tokens_.next();
      tokens_.next();
      compare.rest.emplace_back(CompareOp::kNotIn, sum());
    } else {
      return compare.rest.empty() ? compare.first : make(line, std::move(compare));
    }
  }
}

ExprRef ExpressionParser::sum() {
  ExprRef left = concatenation();
  while (tokens_.is_operator("+") || tokens_.is_operator("-")) {
    const Token& token = tokens_.next();
    const BinaryOp op = token.text == "+" ? BinaryOp::kAdd : BinaryOp::kSubtract;
    left = make(token.line, Binary{op, left, concatenation()});
  }
  return left;
}

ExprRef ExpressionParser::concatenation() {
  const int line = tokens_.current().line;
  Concat concat{.parts = {product()}};
  while (tokens_.skip_operator("~")) {
    concat.parts.push_back(product());
  }
  return concat.parts.size() == 1 ? concat.parts[0] : make(line, std::move(concat));
}

ExprRef ExpressionParser::product() {
  ExprRef left = power();
  while (const auto op = product_op(tokens_.current())) {
    const int line = tokens_.next().line;
    left = make(line, Binary{*op, left, power()});
  }
  return left;
}

ExprRef ExpressionParser::power() {
  ExprRef left = unary(true);
  while (tokens_.is_operator("**")) {
    const int line = tokens_.next().line;
    left = make(line, Binary{BinaryOp::kPower, left, unary(true)});
  }
  return left;
}

ExprRef ExpressionParser::unary(bool with_filters) {
  const ParseLevel level(depth_, tokens_.current());
  ExprRef expr = nullptr;
  if (tokens_.is_operator("-") || tokens_.is_operator("+")) {
    const Token& token = tokens_.next();
    const UnaryOp op = token.text == "-" ? UnaryOp::kMinus : UnaryOp::kPlus;
    expr = make(token.line, Unary{op, unary(false)});
  } else {
    expr = primary();
  }
  expr = postfix(expr);
  return with_filters ? postfix_filters(expr) : expr;
}

ExprRef ExpressionParser::primary() {
  switch (tokens_.current().kind) {
    case TokenKind::kName:
      return name();
    case TokenKind::kString:
      return string();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return number();
    case TokenKind::kOperator:
      if (tokens_.is_operator("(")) {
        return parenthesised();
      }
      if (tokens_.is_operator("[")) {
        return list();
      }
      if (tokens_.is_operator("{")) {
        return dict();
      }
      break;
    case TokenKind::kData:
    case TokenKind::kVariableBegin:
    case TokenKind::kVariableEnd:
    case TokenKind::kBlockBegin:
    case TokenKind::kBlockEnd:
    case TokenKind::kEnd:
      break;
  }
  tokens_.unexpected("an expression");
}

ExprRef ExpressionParser::name() {
  const Token& token = tokens_.next();
  const std::string& text = token.text;
  if (text == "true" || text == "True" || text == "false" || text == "False") {
    return make(token.line, Literal{text[0] == 't' || text[0] == 'T'});
  }
  if (text == "none" || text == "None") {
    return make(token.line, Literal{None{}});
  }
  for (MacroNode* macro : macros_) {
    macro->takes_caller |= text == "caller";
    macro->takes_varargs |= text == "varargs";
    macro->takes_kwargs |= text == "kwargs";
  }
  return make(token.line, Name{text});
}

ExprRef ExpressionParser::string() {
  const int line = tokens_.current().line;
  std::string text = tokens_.next().text;
  while (tokens_.is(TokenKind::kString)) {  // neighbours join, as in Python
    text += tokens_.next().text;
  }
  return make(line, Literal{Text(text)});
}

ExprRef ExpressionParser::number() {
  const Token& token = tokens_.next();
  if (token.kind == TokenKind::kFloat) {
    return make(token.line, Literal{std::strtod(token.text.c_str(), nullptr)});
  }
  std::string_view digits = token.text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && digits[1] > '9') {
    const char prefix = static_cast<char>(digits[1] | 0x20);
    base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : 2;
    digits.remove_prefix(2);
  }
  std::int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{}) {
    TokenStream::error(token, fmt::format("{} does not fit in 64 bits", token.text.substr(0, 40)));
  }
  return make(token.line, Literal{value});
}

ExprRef ExpressionParser::parenthesised() {
  const int line = tokens_.next().line;
  ExprRef expr = nullptr;
  if (tokens_.is_operator(")")) {
    expr = make(line, ListExpr{.kind = SequenceKind::kTuple, .items = {}});
  } else {
    expr = tuple(Commas::kExpression);
  }
  tokens_.expect_operator(")");
  return expr;
}

bool ExpressionParser::at_tuple_end(Commas where) const {
  return tokens_.is(TokenKind::kVariableEnd) || tokens_.is(TokenKind::kBlockEnd) ||
         tokens_.is_operator(")") || (where == Commas::kLoop && tokens_.is_name("recursive"));
}

ExprRef ExpressionParser::tuple(Commas where) {
  const int line = tokens_.current().line;
  if (at_tuple_end(where)) {
    tokens_.unexpected("an expression");
  }
  const auto item = [&] { return where == Commas::kLoop ? expression_or() : expression(); };
  ListExpr tuple{.kind = SequenceKind::kTuple, .items = {item()}};
  if (!tokens_.is_operator(",")) {
    return tuple.items[0];
  }
  while (tokens_.skip_operator(",") && !at_tuple_end(where)) {
    tuple.items.push_back(item());
  }
  return make(line, std::move(tuple));
}

ExprRef ExpressionParser::list() {
  const int line = tokens_.next().line;
  ListExpr list;
  while (!tokens_.is_operator("]")) {
    list.items.push_back(expression());
    if (!tokens_.skip_operator(",")) {
      break;
    }
  }
  tokens_.expect_operator("]");
  return make(line, std::move(list));
}

ExprRef ExpressionParser::dict() {
  const int line = tokens_.next().line;
  DictExpr dict;
  while (!tokens_.is_operator("}")) {
    ExprRef key = expression();
    tokens_.expect_operator(":");
    dict.entries.emplace_back(key, expression());
    if (!tokens_.skip_operator(",")) {
      break;
    }
  }
  tokens_.expect_operator("}");
  return make(line, std::move(dict));
}

ExprRef ExpressionParser::postfix(ExprRef expr) {
  while (true) {
    if (tokens_.is_operator(".")) {
      expr = attribute(expr);
    } else if (tokens_.is_operator("[")) {
      expr = subscript(expr);
    } else if (tokens_.is_operator("(")) {
      expr = call(expr);
    } else {
      return expr;
    }
  }
}

ExprRef ExpressionParser::postfix_filters(ExprRef expr) {
  while (true) {
    if (tokens_.is_operator("|")) {
      expr = filters(expr, false);
    } else if (tokens_.is_name("is")) {
      expr = test(expr);
    } else if (tokens_.is_operator("(")) {
      expr = call(expr);
    } else {
      return expr;
    }
  }
}

ExprRef ExpressionParser::attribute(ExprRef object) {
  const int line = tokens_.next().line;
  if (tokens_.is(TokenKind::kInteger)) {
    return make(line, Subscript{object, number()});
  }
  return make(line, Attribute{object, tokens_.expect(TokenKind::kName, "a name or number").text});
}

ExprRef ExpressionParser::subscript(ExprRef object) {
  const int line = tokens_.next().line;
  ListExpr items{.kind = SequenceKind::kTuple, .items = {}};
  while (!tokens_.is_operator("]")) {
    if (!items.items.empty()) {
      tokens_.expect_operator(",");
    }
    items.items.push_back(subscript_item());
  }
  tokens_.expect_operator("]");
  ExprRef index = items.items.size() == 1 ? items.items[0] : make(line, std::move(items));
  return make(line, Subscript{object, index});
}

ExprRef ExpressionParser::subscript_item() {
  const int line = tokens_.current().line;
  const Expr* start = tokens_.is_operator(":") ? nullptr : expression();
  if (!tokens_.skip_operator(":")) {
    return start;
  }
  const auto part = [&]() -> const Expr* {
    const bool absent =
        tokens_.is_operator(":") || tokens_.is_operator("]") || tokens_.is_operator(",");
    return absent ? nullptr : expression();
  };
  const Expr* stop = part();
  const Expr* step = tokens_.skip_operator(":") ? part() : nullptr;
  return make(line, SliceExpr{start, stop, step});
}

ExprRef ExpressionParser::call(ExprRef callee) {
  const int line = tokens_.current().line;
  return make(line, Call{callee, arguments()});
}

CallArguments ExpressionParser::arguments() {
  CallArguments out;
  tokens_.expect_operator("(");
  while (!tokens_.is_operator(")")) {
    argument(out);
    if (!tokens_.skip_operator(",")) {
      break;
    }
  }
  tokens_.expect_operator(")");
  return out;
}

void ExpressionParser::argument(CallArguments& out) {
  const Token& token = tokens_.current();
  const auto ensure = [&](bool ordered) {
    if (!ordered) {
      TokenStream::error(token, "positional arguments come first, then named ones");
    }
  };
  const Token& look = tokens_.look();
  if (tokens_.skip_operator("*")) {
    ensure(!out.more_positional && !out.more_named);
    out.more_positional = expression();
  } else if (tokens_.skip_operator("**")) {
    ensure(!out.more_named);
    out.more_named = expression();
  } else if (token.kind == TokenKind::kName && look.kind == TokenKind::kOperator &&
             look.text == "=") {
    ensure(!out.more_named);
    tokens_.next();
    tokens_.next();
    out.named.emplace_back(token.text, expression());
  } else {
    ensure(!out.more_positional && !out.more_named && out.named.empty());
    out.positional.push_back(expression());
  }
}

std::string ExpressionParser::dotted_name() {
  std::string name = tokens_.expect(TokenKind::kName, "a name").text;
  while (tokens_.skip_operator(".")) {
    name += "." + tokens_.expect(TokenKind::kName, "a name").text;
  }
  return name;
}

const Expr* ExpressionParser::filters(const Expr* input, bool at_first_name) {
  while (at_first_name || tokens_.skip_operator("|")) {
    at_first_name = false;
    const int line = tokens_.current().line;
    std::string name = dotted_name();
    CallArguments args = tokens_.is_operator("(") ? arguments() : CallArguments{};
    input = make(line, Filter{input, std::move(name), std::move(args)});
  }
  return input;
}

ExprRef ExpressionParser::test(ExprRef input) {
  const int line = tokens_.next().line;
  const bool negated = tokens_.skip_name("not");
  Test test{.input = input, .name = dotted_name(), .arguments = {}};
  const Token& token = tokens_.current();
  const bool literal = token.kind == TokenKind::kString || token.kind == TokenKind::kInteger ||
                       token.kind == TokenKind::kFloat || tokens_.is_operator("[") ||
                       tokens_.is_operator("{");
  const bool ends = tokens_.is_name("else") || tokens_.is_name("or") || tokens_.is_name("and");
  if (tokens_.is_operator("(")) {
    test.arguments = arguments();
  } else if (tokens_.is_name("is")) {
    TokenStream::error(token, "tests with 'is' cannot be chained");
  } else if (literal || (token.kind == TokenKind::kName && !ends)) {
    test.arguments.positional.push_back(postfix(primary()));
  }
  ExprRef expr = make(line, std::move(test));
  return negated ? make(line, Unary{UnaryOp::kNot, expr}) : expr;
}

}  // namespace godwit::chat::jinja
