#include "client/torch/script/script_alias.h"

#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <set>
#include <string>

namespace stowage {
namespace {

bool Overlap(const std::vector<c10::Symbol>& a, const std::vector<c10::Symbol>& b) {
  return std::any_of(a.begin(), a.end(), [&b](c10::Symbol set) {
    return std::find(b.begin(), b.end(), set) != b.end();
  });
}

bool MayBeAnything(const std::vector<c10::Symbol>& sets) {
  return std::find(sets.begin(), sets.end(), c10::AliasInfo::wildcardSet()) != sets.end();
}

// Returns its input as it is, which its schema does not say, unless it is training and drops something.
bool IsDropoutThatMayRest(const ScriptNode* node) {
  static const auto* const kDropouts =
      new std::set<std::string>{"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout",
                                "aten::feature_alpha_dropout"};
  if (kDropouts->count(node->kind().toQualString()) == 0) return false;
  const auto share = torch::jit::toIValue(node->input(1));
  const auto train = torch::jit::toIValue(node->input(2));
  const bool drops = share && share->isDouble() && share->toDouble() > 0;
  const bool trains = train && train->isBool() && train->toBool();
  return !drops || !trains;
}

}  // namespace

ScriptAliases::ScriptAliases(torch::jit::Graph* graph) {
  for (ScriptNode* node : graph->nodes()) Add(node);
  for (const auto& [node, values] : writes_) {
    for (const ScriptValue* value : values) written_.insert(Root(Index(value)));
  }
}

int ScriptAliases::Index(const ScriptValue* value) {
  const auto [at, is_new] = index_.emplace(value, static_cast<int>(parent_.size()));
  if (is_new) parent_.push_back(at->second);
  return at->second;
}

int ScriptAliases::Root(int index) const {
  while (parent_[static_cast<size_t>(index)] != index) index = parent_[static_cast<size_t>(index)];
  return index;
}

void ScriptAliases::Join(const ScriptValue* a, const ScriptValue* b) {
  const int from = Root(Index(a));
  parent_[static_cast<size_t>(from)] = Root(Index(b));
}

int ScriptAliases::ClassOf(const ScriptValue* value) const {
  const auto found = index_.find(value);
  return found == index_.end() ? -1 : Root(found->second);
}

std::vector<const ScriptValue*> ScriptAliases::Parts(const ScriptValue* value) const {
  if (!IsPacking(value->node())) return {value};
  std::vector<const ScriptValue*> parts;
  for (const ScriptValue* input : value->node()->inputs()) {
    for (const ScriptValue* part : Parts(input)) parts.push_back(part);
  }
  return parts;
}

std::vector<int> ScriptAliases::WrittenBy(const ScriptNode* node) const {
  std::vector<int> classes;
  VisitNested(node, [&](const ScriptNode* each) {
    const auto found = writes_.find(each);
    if (found == writes_.end()) return;
    for (const ScriptValue* value : found->second) classes.push_back(ClassOf(value));
  });
  std::sort(classes.begin(), classes.end());
  classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  return classes;
}

bool ScriptAliases::IsWritten(const ScriptValue* value) const {
  const std::vector<const ScriptValue*> parts = Parts(value);
  return written_.count(ClassOf(value)) > 0 ||
         std::any_of(parts.begin(), parts.end(),
                     [this](const ScriptValue* part) { return written_.count(ClassOf(part)) > 0; });
}

void ScriptAliases::JoinAll(const ScriptNode* node) {
  for (const ScriptValue* output : node->outputs()) {
    if (!HoldsTensors(*output->type())) continue;
    for (const ScriptValue* input : node->inputs()) {
      if (!HoldsTensors(*input->type())) continue;
      for (const ScriptValue* part : Parts(input)) Join(output, part);
    }
  }
}

void ScriptAliases::AddBySchema(const ScriptNode* node, const c10::FunctionSchema& schema) {
  const size_t arguments = std::min(schema.arguments().size(), node->inputs().size());
  for (size_t i = 0; i < arguments; ++i) {
    if (!WritesTo(schema.arguments()[i])) continue;
    writes_[node].push_back(node->input(i));
    for (const ScriptValue* part : Parts(node->input(i))) writes_[node].push_back(part);
  }
  const size_t results = std::min(schema.returns().size(), node->outputs().size());
  for (size_t r = 0; r < results; ++r) {
    const std::vector<c10::Symbol> made = AliasSets(schema.returns()[r]);
    if (made.empty()) continue;
    for (size_t i = 0; i < arguments; ++i) {
      const bool shares = Overlap(made, AliasSets(schema.arguments()[i])) ||
                          (MayBeAnything(made) && HoldsTensors(*node->input(i)->type()));
      if (!shares) continue;
      for (const ScriptValue* part : Parts(node->input(i))) Join(node->output(r), part);
    }
  }
}

void ScriptAliases::AddBlocks(ScriptNode* node) {
  const bool is_loop = node->kind() == c10::prim::Loop;
  for (torch::jit::Block* block : node->blocks()) {
    for (ScriptNode* inner : block->nodes()) Add(inner);
    // A loop's block starts with the count and ends with the condition and what it carries on.
    const size_t skip = is_loop ? 1 : 0;
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      if (i + skip >= block->outputs().size()) break;
      for (const ScriptValue* part : Parts(block->outputs()[i + skip])) {
        Join(node->output(i), part);
      }
      if (!is_loop) continue;
      Join(node->output(i), block->inputs()[i + 1]);
      for (const ScriptValue* part : Parts(node->input(i + 2))) Join(node->output(i), part);
    }
  }
}

void ScriptAliases::Add(ScriptNode* node) {
  for (const ScriptValue* input : node->inputs()) Index(input);
  for (const ScriptValue* output : node->outputs()) Index(output);
  if (IsConstant(node) || IsPacking(node)) return;
  if (!node->blocks().empty()) return AddBlocks(node);
  const c10::FunctionSchema* schema = node->maybeSchema();
  if (schema == nullptr || schema->is_vararg() || IsDropoutThatMayRest(node)) return JoinAll(node);
  AddBySchema(node, *schema);
}

}  // namespace stowage
