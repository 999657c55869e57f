#include <algorithm>

#include "base/check.h"
#include "chat/jinja/evaluator.h"
#include "chat/jinja/operators.h"
#include "chat/jinja/printing.h"

namespace godwit::chat::jinja {

Value Evaluator::evaluate(const Expr& expr) {
  const Budget::Level level(budget_);
  budget_.step();
  line_ = expr.line;
  return std::visit([this](const auto& node) { return value_of(node); }, expr.node);
}

const Value* Evaluator::lookup(std::string_view name) const {
  for (const Scope* scope = scope_; scope; scope = scope->parent) {
    for (const auto& [known, value] : scope->variables) {
      if (known == name) {
        return &value;
      }
    }
  }
  return nullptr;
}

Value Evaluator::value_of(const Literal& node) { return node.value; }

Value Evaluator::value_of(const Name& node) {
  const Value* found = lookup(node.name);
  return found ? *found : make_undefined(fmt::format("{} is undefined", quoted(node.name)));
}

Value Evaluator::value_of(const ListExpr& node) {
  std::vector<Value> items;
  for (ExprRef item : node.items) {
    items.push_back(evaluate(*item));
  }
  return make_sequence(budget_, node.kind, std::move(items));
}

Value Evaluator::value_of(const DictExpr& node) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key_expr, value_expr] : node.entries) {
    const Value key = evaluate(*key_expr);
    set_entry(budget_, entries, key, evaluate(*value_expr));
  }
  return make_dict(budget_, std::move(entries));
}

Value Evaluator::value_of(const Unary& node) { return unary(node.op, evaluate(*node.operand)); }

Value Evaluator::value_of(const Binary& node) {
  const int line = line_;
  const Value left = evaluate(*node.left);
  const Value right = evaluate(*node.right);
  line_ = line;
  return binary(budget_, node.op, left, right);
}

Value Evaluator::value_of(const Logic& node) {
  Value left = evaluate(*node.left);
  return truthy(left) == (node.op == LogicOp::kOr) ? left : evaluate(*node.right);
}

Value Evaluator::value_of(const Concat& node) {
  TextBuilder out(budget_);
  for (ExprRef part : node.parts) {
    append_str(budget_, out, evaluate(*part));
  }
  return out.finish();
}

Value Evaluator::value_of(const Compare& node) {
  Value left = evaluate(*node.first);
  for (const auto& [op, expr] : node.rest) {
    Value right = evaluate(*expr);
    if (!compare(budget_, op, left, right)) {
      return false;
    }
    left = std::move(right);
  }
  return true;
}

Value Evaluator::value_of(const Conditional& node) {
  if (truthy(evaluate(*node.condition))) {
    return evaluate(*node.then);
  }
  if (node.otherwise) {
    return evaluate(*node.otherwise);
  }
  return make_undefined(
      fmt::format("the inline if-expression on line {} evaluated to false and no else section was "
                  "defined.",
                  line_));
}

Value Evaluator::value_of(const Attribute& node) {
  const int line = line_;
  const Value object = evaluate(*node.object);
  line_ = line;
  return get_attribute(runtime_, object, node.name);
}

Value Evaluator::value_of(const Subscript& node) {
  const int line = line_;
  const Value object = evaluate(*node.object);
  if (const auto* slicing = std::get_if<SliceExpr>(&node.index->node)) {
    const auto bound = [&](const Expr* expr) { return expr ? evaluate(*expr) : Value(); };
    const SliceBounds bounds{bound(slicing->start), bound(slicing->stop), bound(slicing->step)};
    line_ = line;
    auto part = slice(budget_, object, bounds);
    return part ? *std::move(part)
                : make_undefined(fmt::format("{} object cannot be sliced", type_name(object)));
  }
  const Value index = evaluate(*node.index);
  line_ = line;
  return get_item(runtime_, object, index);
}

Value Evaluator::value_of(const SliceExpr&) {
  raise("a slice stands alone in its subscript");  // as in x[1:2, 3]
}

Value Evaluator::value_of(const Call& node) {
  const int line = line_;
  const Value callee = evaluate(*node.callee);
  Arguments args = arguments(node.arguments);
  line_ = line;
  return call(callee, std::move(args));
}

Value Evaluator::value_of(const Filter& node) {
  check(node.input != nullptr, "a filter without input outside of a filter block");
  const int line = line_;
  const Value input = evaluate(*node.input);
  const Arguments args = arguments(node.arguments);
  line_ = line;
  return apply_filter(runtime_, node.name, input, args);
}

Value Evaluator::filtered(const Expr& filters, const Value& body) {
  const Budget::Level level(budget_);
  const auto& node = std::get<Filter>(filters.node);
  const Value input = node.input ? filtered(*node.input, body) : body;
  const Arguments args = arguments(node.arguments);
  line_ = filters.line;
  return apply_filter(runtime_, node.name, input, args);
}

Value Evaluator::value_of(const Test& node) {
  const int line = line_;
  const Value input = evaluate(*node.input);
  const Arguments args = arguments(node.arguments);
  line_ = line;
  return apply_test(runtime_, node.name, input, args);
}

Arguments Evaluator::arguments(const CallArguments& node) {
  Arguments out;
  for (ExprRef expr : node.positional) {
    out.positional.push_back(evaluate(*expr));
  }
  for (const auto& [name, expr] : node.named) {
    out.named.emplace_back(name, evaluate(*expr));
  }
  if (node.more_positional) {
    for (Value& value : iterate(budget_, evaluate(*node.more_positional))) {
      out.positional.push_back(std::move(value));
    }
  }
  if (node.more_named) {
    const Value more = evaluate(*node.more_named);
    if (!more.dict()) {
      raise("argument after ** must be a mapping, not {}", type_name(more));
    }
    for (const auto& [key, value] : more.dict()->entries) {
      if (!key.text()) {
        raise("keywords must be strings");
      }
      budget_.allocate(key.text()->size() + sizeof(Value));
      out.named.emplace_back(key.text()->view(), value);
    }
  }
  return out;
}

}  // namespace godwit::chat::jinja
