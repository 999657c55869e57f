#include <algorithm>

#include "chat/jinja/evaluator.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/printing.h"

namespace godwit::chat::jinja {

Evaluator::InnerScope::InnerScope(Evaluator& evaluator, Scope* parent)
    : evaluator_(evaluator), outside_(evaluator.scope_), scope_(std::make_unique<Scope>()) {
  scope_->parent = parent;
  evaluator_.scope_ = scope_.get();
}

Evaluator::InnerScope::~InnerScope() {
  evaluator_.scope_ = outside_;
  if (scope_->captured) {
    evaluator_.kept_scopes_.push_back(std::move(scope_));
  }
}

Evaluator::Capture::Capture(Evaluator& evaluator)
    : evaluator_(evaluator), outside_(evaluator.out_), builder_(evaluator.budget_) {
  evaluator_.out_ = &builder_;
}

Evaluator::Capture::~Capture() { evaluator_.out_ = outside_; }

Evaluator::Evaluator(const Ast& ast, Budget& budget, std::int64_t now)
    : ast_(ast), budget_(budget), runtime_{budget}, now_(now) {
  define("range", Builtin::kRange);
  define("dict", Builtin::kDict);
  define("namespace", Builtin::kNamespace);
  define("cycler", Builtin::kCycler);
  define("joiner", Builtin::kJoiner);
  define("raise_exception", Builtin::kRaiseException);
  define("strftime_now", Builtin::kStrftimeNow);
}

void Evaluator::define(std::string name, Value value) {
  names_.push_back(std::move(name));
  set(names_.back(), std::move(value));
}

MarkedText Evaluator::run() {
  TextBuilder out(budget_);
  out_ = &out;
  root_out_ = &out;
  const InnerScope scope(*this, &globals_);
  execute(ast_.body);
  return out.finish_marked();
}

void Evaluator::set(std::string_view name, Value value) {
  for (auto& [known, old] : scope_->variables) {
    if (known == name) {
      old = std::move(value);
      return;
    }
  }
  scope_->variables.emplace_back(name, std::move(value));
}

Object* Evaluator::make_object(Object object) {
  budget_.allocate(sizeof(Object));
  return objects_.emplace_back(std::make_unique<Object>(std::move(object))).get();
}

void Evaluator::capture_scopes() {
  for (Scope* scope = scope_; scope && !scope->captured; scope = scope->parent) {
    budget_.allocate(sizeof(Scope));
    scope->captured = true;
  }
}

void Evaluator::check_output() const {
  if (root_out_->size() > budget_.limits().max_output_bytes) {
    raise("the output is longer than {} bytes", budget_.limits().max_output_bytes);
  }
}

Evaluator::Flow Evaluator::execute(const Body& body) {
  for (const Stmt* stmt : body) {
    if (const Flow flow = execute(*stmt); flow != Flow::kNext) {
      return flow;
    }
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::execute(const Stmt& stmt) {
  const Budget::Level level(budget_);
  budget_.step();
  line_ = stmt.line;
  return std::visit([this](const auto& node) { return run_node(node); }, stmt.node);
}

Evaluator::Flow Evaluator::run_node(const DataNode& node) {
  out_->append(node.text);
  check_output();
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_node(const OutputNode& node) {
  append_str(budget_, *out_, evaluate(*node.value));
  check_output();
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_node(const IfNode& node) {
  for (const auto& [condition, body] : node.branches) {
    if (truthy(evaluate(*condition))) {
      return execute(body);
    }
  }
  return execute(node.otherwise);
}

Evaluator::Flow Evaluator::run_node(const ForNode& node) {
  return run_loop(node, evaluate(*node.iterable), 0);
}

bool Evaluator::find_next(const ForNode& node, Loop& loop, std::vector<Value>& source,
                          std::size_t& next) {
  while (next < source.size()) {
    const InnerScope scope(*this, loop.scope);
    assign(node.target, source[next]);
    const bool keep = truthy(evaluate(*node.filter));
    Value item = std::move(source[next++]);
    if (keep) {
      loop.items.push_back(std::move(item));
      return true;
    }
  }
  return false;
}

Evaluator::Flow Evaluator::run_loop(const ForNode& node, const Value& iterable,
                                    std::size_t depth0) {
  if (node.recursive) {
    capture_scopes();
  }
  std::vector<Value> source = iterate(budget_, iterable);
  std::size_t next = 0;
  Object* object = make_object(Object{Loop{}});
  Loop& loop = std::get<Loop>(object->data);
  loop.node = &node;
  loop.scope = scope_;
  loop.depth0 = depth0;
  if (node.filter) {
    loop.find_next = [&, this] { return find_next(node, loop, source, next); };
  } else {
    loop.items = std::move(source);
  }
  bool completed = false;  // an iteration, to its end: in jinja2 `else` asks for that
  for (std::size_t i = 0; loop.reaches(i); ++i) {
    budget_.step();
    loop.index0 = i;
    const InnerScope scope(*this, scope_);
    set("loop", object);
    assign(node.target, loop.items[i]);
    const Flow flow = execute(node.body);
    completed |= flow == Flow::kNext;
    if (flow == Flow::kBreak) {
      break;
    }
  }
  loop.find_next = nullptr;
  if (!completed) {
    const InnerScope scope(*this, scope_);
    return execute(node.otherwise);
  }
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_node(const JumpNode& node) {
  return node.jump == Jump::kBreak ? Flow::kBreak : Flow::kContinue;
}

Evaluator::Flow Evaluator::run_node(const SetNode& node) {
  assign(node.target, evaluate(*node.value));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_node(const SetBlockNode& node) {
  Value value;
  {
    Capture capture(*this);
    const InnerScope scope(*this, scope_);
    if (const Flow flow = execute(node.body); flow != Flow::kNext) {
      return flow;
    }
    value = capture.text();
  }
  assign(node.target, node.filter ? filtered(*node.filter, value) : std::move(value));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_node(const MacroStmt& node) {
  capture_scopes();
  set(node.macro->name, make_object(Object{Macro{.node = node.macro, .scope = scope_}}));
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_node(const CallBlockNode& node) {
  const auto& [callee_expr, call_arguments] = std::get<Call>(node.call->node);
  const Value callee = evaluate(*callee_expr);
  Arguments args = arguments(call_arguments);
  capture_scopes();
  args.named.emplace_back("caller",
                          make_object(Object{Macro{.node = node.caller, .scope = scope_}}));
  append_str(budget_, *out_, call(callee, std::move(args)));
  check_output();
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_node(const FilterBlockNode& node) {
  Value body;
  {
    Capture capture(*this);
    const InnerScope scope(*this, scope_);
    if (const Flow flow = execute(node.body); flow != Flow::kNext) {
      return flow;
    }
    body = capture.text();
  }
  append_str(budget_, *out_, filtered(*node.filter, body));
  check_output();
  return Flow::kNext;
}

Evaluator::Flow Evaluator::run_node(const WithNode& node) {
  std::vector<Value> values;  // all evaluated outside, before the first is assigned
  for (const auto& [target, value] : node.variables) {
    values.push_back(evaluate(*value));
  }
  const InnerScope scope(*this, scope_);
  for (std::size_t i = 0; i < values.size(); ++i) {
    assign(node.variables[i].first, std::move(values[i]));
  }
  return execute(node.body);
}

void Evaluator::assign(const Target& target, Value value) {
  if (!target.is_tuple) {
    return target.attribute.empty() ? set(target.name, std::move(value))
                                    : assign_attribute(target, std::move(value));
  }
  if (!is_iterable(value)) {
    raise("cannot unpack non-iterable {} object", type_name(value));
  }
  std::vector<Value> items = iterate(budget_, value);
  if (items.size() < target.parts.size()) {
    raise("not enough values to unpack (expected {}, got {})", target.parts.size(), items.size());
  }
  if (items.size() > target.parts.size()) {
    raise("too many values to unpack (expected {})", target.parts.size());
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    assign(target.parts[i], std::move(items[i]));
  }
}

void Evaluator::assign_attribute(const Target& target, Value value) {
  const Value* found = lookup(target.name);
  Object* const* object = found ? found->get<Object*>() : nullptr;
  auto* ns = object ? std::get_if<Namespace>(&(*object)->data) : nullptr;
  if (!ns) {
    raise("cannot assign attribute on non-namespace object");
  }
  for (auto& [name, old] : ns->attributes) {
    if (name == target.attribute) {
      old = std::move(value);
      return;
    }
  }
  budget_.allocate(sizeof(Value) + target.attribute.size());
  ns->attributes.emplace_back(target.attribute, std::move(value));
}

}  // namespace godwit::chat::jinja
