// The tree of a parsed template. Nodes live in the Ast and point at each other plainly, so that
// taking a deep tree down does not recurse.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chat/jinja/value.h"

namespace godwit::chat::jinja {

struct Expr;
struct Stmt;
using ExprRef = const Expr*;  // never null, except where a node says so
using Body = std::vector<const Stmt*>;

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct ListExpr {
  SequenceKind kind = SequenceKind::kList;  // or kTuple
  std::vector<ExprRef> items;
};
struct DictExpr {
  std::vector<std::pair<ExprRef, ExprRef>> entries;
};
enum class UnaryOp { kNot, kMinus, kPlus };
struct Unary {
  UnaryOp op;
  ExprRef operand;
};
enum class BinaryOp { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
struct Binary {
  BinaryOp op;
  ExprRef left, right;
};
enum class LogicOp { kAnd, kOr };
struct Logic {
  LogicOp op;
  ExprRef left, right;
};
struct Concat {
  std::vector<ExprRef> parts;
};
enum class CompareOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
struct Compare {
  ExprRef first;
  std::vector<std::pair<CompareOp, ExprRef>> rest;  // a < b < c, as in Python
};
struct Conditional {
  ExprRef condition, then;
  const Expr* otherwise;  // null: undefined
};
struct Attribute {
  ExprRef object;
  std::string name;
};
struct Subscript {
  ExprRef object, index;
};
struct SliceExpr {
  const Expr *start, *stop, *step;  // null where left out
};
struct CallArguments {
  std::vector<ExprRef> positional;
  std::vector<std::pair<std::string, ExprRef>> named;
  const Expr* more_positional = nullptr;  // *args
  const Expr* more_named = nullptr;       // **kwargs
};
struct Call {
  ExprRef callee;
  CallArguments arguments;
};
struct Filter {
  const Expr* input;  // null: the body of a filter block
  std::string name;
  CallArguments arguments;
};
struct Test {
  ExprRef input;
  std::string name;
  CallArguments arguments;
};

struct Expr {
  std::variant<Literal, Name, ListExpr, DictExpr, Unary, Binary, Logic, Concat, Compare,
               Conditional, Attribute, Subscript, SliceExpr, Call, Filter, Test>
      node;
  int line = 0;
};

// What an assignment writes to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  std::string name;
  std::string attribute;  // "" for a plain name
  std::vector<Target> parts;
  bool is_tuple = false;
};

struct DataNode {
  Text text;
};
struct OutputNode {
  ExprRef value;
};
struct IfNode {
  std::vector<std::pair<ExprRef, Body>> branches;
  Body otherwise;
};
struct ForNode {
  Target target;
  ExprRef iterable;
  const Expr* filter;  // null: all items
  Body body, otherwise;
  bool recursive = false;
};
enum class Jump { kBreak, kContinue };
struct JumpNode {
  Jump jump;
};
struct SetNode {
  Target target;
  ExprRef value;
};
struct SetBlockNode {
  Target target;
  const Expr* filter;  // null, or a chain of Filter whose innermost input is null
  Body body;
};
struct MacroNode {
  std::string name;
  std::vector<std::string> parameters;
  std::vector<ExprRef> defaults;  // of the last parameters
  Body body;
  // Which of these names the body asks for: only then may a call bring more.
  bool takes_caller = false, takes_varargs = false, takes_kwargs = false;
};
// {% macro %}
struct MacroStmt {
  const MacroNode* macro;
};
// {% call %}: the body becomes caller().
struct CallBlockNode {
  ExprRef call;
  const MacroNode* caller;
};
struct FilterBlockNode {
  ExprRef filter;
  Body body;
};
// {% with %}, {% generation %}: a scope of its own.
struct WithNode {
  std::vector<std::pair<Target, ExprRef>> variables;
  Body body;
};

struct Stmt {
  std::variant<DataNode, OutputNode, IfNode, ForNode, JumpNode, SetNode, SetBlockNode, MacroStmt,
               CallBlockNode, FilterBlockNode, WithNode>
      node;
  int line = 0;
};

struct Ast {
  std::deque<Expr> exprs;
  std::deque<Stmt> stmts;
  std::deque<MacroNode> macros;
  Body body;
};

}  // namespace godwit::chat::jinja
