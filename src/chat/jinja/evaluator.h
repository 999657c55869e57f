// Walks a parsed template and writes its output. One Evaluator renders once; it owns everything
// that the rendering makes and that may refer back to itself.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/jinja/ast.h"
#include "chat/jinja/object.h"
#include "chat/jinja/runtime.h"

namespace godwit::chat::jinja {

// Variables of one block. Names point into the Ast or the evaluator's globals.
struct Scope {
  Scope* parent = nullptr;
  std::vector<std::pair<std::string_view, Value>> variables;
  bool captured = false;  // a macro may look here later
};

class Evaluator {
 public:
  // `now`: seconds since 1970, for strftime_now.
  Evaluator(const Ast& ast, Budget& budget, std::int64_t now);

  void define(std::string name, Value value);
  // Throws RenderError; line() then says where.
  MarkedText run();
  int line() const { return line_; }

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class InnerScope;
  class Capture;

  // Statements: evaluator_statements.cpp.
  Flow execute(const Body& body);
  Flow execute(const Stmt& stmt);
  Flow run_node(const DataNode& node);
  Flow run_node(const OutputNode& node);
  Flow run_node(const IfNode& node);
  Flow run_node(const ForNode& node);
  Flow run_node(const JumpNode& node);
  Flow run_node(const SetNode& node);
  Flow run_node(const SetBlockNode& node);
  Flow run_node(const MacroStmt& node);
  Flow run_node(const CallBlockNode& node);
  Flow run_node(const FilterBlockNode& node);
  Flow run_node(const WithNode& node);
  bool find_next(const ForNode& node, Loop& loop, std::vector<Value>& source, std::size_t& next);
  Flow run_loop(const ForNode& node, const Value& iterable, std::size_t depth0);
  void check_output() const;
  void assign(const Target& target, Value value);
  void assign_attribute(const Target& target, Value value);
  void set(std::string_view name, Value value);
  void capture_scopes();
  Object* make_object(Object object);

  // Expressions: evaluator_expressions.cpp.
  Value evaluate(const Expr& expr);
  Value value_of(const Literal& node);
  Value value_of(const Name& node);
  Value value_of(const ListExpr& node);
  Value value_of(const DictExpr& node);
  Value value_of(const Unary& node);
  Value value_of(const Binary& node);
  Value value_of(const Logic& node);
  Value value_of(const Concat& node);
  Value value_of(const Compare& node);
  Value value_of(const Conditional& node);
  Value value_of(const Attribute& node);
  Value value_of(const Subscript& node);
  Value value_of(const SliceExpr& node);
  Value value_of(const Call& node);
  Value value_of(const Filter& node);
  Value value_of(const Test& node);
  // The body of a filter block put through its filters.
  Value filtered(const Expr& filters, const Value& body);
  Arguments arguments(const CallArguments& node);
  const Value* lookup(std::string_view name) const;

  // Calls: evaluator_calls.cpp.
  Value call(const Value& callee, Arguments arguments);
  Value call_object(Object& object, Arguments arguments);
  Value call_macro(const Macro& macro, Arguments arguments);
  void bind_parameters(const MacroNode& macro, Arguments& arguments);
  Value call_builtin(Builtin builtin, const Arguments& arguments);
  Value make_range(const Arguments& arguments);
  Value make_dict_of(const Arguments& arguments);
  Value make_namespace(const Arguments& arguments);
  Value strftime_now(const Arguments& arguments);

  const Ast& ast_;
  Budget& budget_;
  Runtime runtime_;
  std::int64_t now_;
  int line_ = 0;

  std::deque<std::string> names_;  // of globals
  Scope globals_;
  Scope* scope_ = &globals_;
  TextBuilder* out_ = nullptr;
  TextBuilder* root_out_ = nullptr;
  std::vector<std::unique_ptr<Scope>> kept_scopes_;
  std::vector<std::unique_ptr<Object>> objects_;
};

// A scope inside the current one, for as long as it lives; longer where a macro captured it.
class Evaluator::InnerScope {
 public:
  InnerScope(Evaluator& evaluator, Scope* parent);
  ~InnerScope();
  InnerScope(const InnerScope&) = delete;
  InnerScope& operator=(const InnerScope&) = delete;

 private:
  Evaluator& evaluator_;
  Scope* outside_;
  std::unique_ptr<Scope> scope_;
};

// Collects the output for as long as it lives.
class Evaluator::Capture {
 public:
  explicit Capture(Evaluator& evaluator);
  ~Capture();
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  Text text() { return builder_.finish(); }

 private:
  Evaluator& evaluator_;
  TextBuilder* outside_;
  TextBuilder builder_;
};

}  // namespace godwit::chat::jinja
