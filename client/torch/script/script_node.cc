#include "client/torch/script/script_node.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

namespace prim = c10::prim;

bool Contains(const std::set<std::string>& names, const ScriptNode* node) {
  return names.count(node->kind().toQualString()) > 0;
}

// "model.py:3:4"; empty if it is not known.
std::string PlaceOf(const torch::jit::SourceRange& range) {
  const auto place = range.file_line_col();
  if (!place) return "";
  const auto& [file, line, column] = *place;
  return file.empty() ? "" : absl::StrCat(file, ":", line, ":", column);
}

bool IsBlockParameter(const ScriptNode* node) { return node->kind() == prim::Param; }

void CollectReads(ScriptNode* node, std::unordered_set<const ScriptValue*>* known,
                  std::vector<ScriptValue*>* reads) {
  for (ScriptValue* input : node->inputs()) {
    if (known->insert(input).second) reads->push_back(input);
  }
  for (torch::jit::Block* block : node->blocks()) {
    for (ScriptValue* input : block->inputs()) known->insert(input);
    for (ScriptNode* inner : block->nodes()) {
      CollectReads(inner, known, reads);
      for (ScriptValue* output : inner->outputs()) known->insert(output);
    }
    CollectReads(block->return_node(), known, reads);
  }
}

void AppendSets(const c10::AliasInfo& alias, std::vector<c10::Symbol>* sets) {
  for (const c10::Symbol set : alias.beforeSets()) sets->push_back(set);
  for (const c10::AliasInfo& contained : alias.containedTypes()) AppendSets(contained, sets);
}

bool AnyWrite(const c10::AliasInfo& alias) {
  return alias.isWrite() ||
         std::any_of(alias.containedTypes().begin(), alias.containedTypes().end(), AnyWrite);
}

// Turns what a tensor holds into something else than a tensor.
bool ReadsData(const ScriptNode* node) {
  if (!node->blocks().empty() || IsPacking(node) || IsUnpacking(node)) return false;
  if (node->outputs().empty() || ReadsOnlyShape(node)) return false;
  const bool makes_tensors =
      std::any_of(node->outputs().begin(), node->outputs().end(),
                  [](const ScriptValue* output) { return HoldsTensors(*output->type()); });
  return !makes_tensors &&
         std::any_of(node->inputs().begin(), node->inputs().end(), [](const ScriptValue* input) {
           return HoldsTensors(*input->type()) && !IsNumberAsTensor(input);
         });
}

const ScriptNode* FindIn(const ScriptValue* value, std::unordered_set<const ScriptValue*>* seen) {
  const ScriptNode* node = value->node();
  if (!seen->insert(value).second || IsBlockParameter(node) || IsConstant(node)) return nullptr;
  if (ReadsData(node)) return node;
  for (const ScriptValue* input : node->inputs()) {
    if (ReadsOnlyShape(node) && HoldsTensors(*input->type())) continue;
    if (const ScriptNode* found = FindIn(input, seen)) return found;
  }
  // A loop carries values round, so that any data read in it may decide.
  const ScriptNode* found = nullptr;
  for (const torch::jit::Block* block : node->blocks()) {
    if (node->kind() == prim::If) {
      for (const ScriptValue* output : block->outputs()) {
        if (found == nullptr) found = FindIn(output, seen);
      }
      continue;
    }
    for (const ScriptNode* inner : block->nodes()) {
      VisitNested(inner, [&found](const ScriptNode* each) {
        if (found == nullptr && ReadsData(each)) found = each;
      });
    }
  }
  return found;
}

}  // namespace

bool HoldsTensors(const c10::Type& type) {
  if (type.kind() == c10::TypeKind::TensorType || type.kind() == c10::TypeKind::AnyType) {
    return true;
  }
  const auto contained = type.containedTypes();
  return std::any_of(contained.begin(), contained.end(),
                     [](const c10::TypePtr& inner) { return HoldsTensors(*inner); });
}

bool IsTensor(const ScriptValue* value) {
  return value->type()->kind() == c10::TypeKind::TensorType;
}

std::string Describe(const ScriptNode* node) {
  const std::string kind = node->kind().toQualString();
  // Of a file, the source that it was made of where the file has that, else its own.
  std::string place;
  if (const auto generated = node->sourceRange().findSourceRangeThatGenerated()) {
    place = PlaceOf(*generated);
  }
  if (place.empty()) place = PlaceOf(node->sourceRange());
  return place.empty() ? kind : absl::StrCat(kind, " at ", place);
}

std::string ShortName(const ScriptNode* node) { return node->kind().toUnqualString(); }

bool IsConstant(const ScriptNode* node) { return node->kind() == prim::Constant; }

bool IsPacking(const ScriptNode* node) {
  return node->kind() == prim::ListConstruct || node->kind() == prim::TupleConstruct;
}

bool IsUnpacking(const ScriptNode* node) {
  return node->kind() == prim::ListUnpack || node->kind() == prim::TupleUnpack ||
         node->kind() == prim::TupleIndex || node->kind() == prim::TupleSlice;
}

void VisitNested(const ScriptNode* node, const std::function<void(const ScriptNode*)>& visit) {
  visit(node);
  for (const torch::jit::Block* block : node->blocks()) {
    for (const ScriptNode* inner : block->nodes()) VisitNested(inner, visit);
  }
}

bool HasEffects(const ScriptNode* node) {
  bool effects = false;
  VisitNested(node, [&](const ScriptNode* each) { effects |= each->hasSideEffects(); });
  return effects;
}

bool IsRandom(const ScriptNode* node) {
  static const auto* const kMore = new std::set<std::string>{"aten::alpha_dropout",
                                                             "aten::alpha_dropout_",
                                                             "aten::bernoulli_",
                                                             "aten::cauchy_",
                                                             "aten::dropout_",
                                                             "aten::exponential_",
                                                             "aten::feature_dropout",
                                                             "aten::feature_dropout_",
                                                             "aten::feature_alpha_dropout",
                                                             "aten::geometric_",
                                                             "aten::log_normal_",
                                                             "aten::native_dropout",
                                                             "aten::normal_",
                                                             "aten::random_",
                                                             "aten::rrelu_",
                                                             "aten::uniform_",
                                                             "aten::feature_alpha_dropout_"};
  bool random = false;
  VisitNested(node, [&](const ScriptNode* each) {
    random |= Contains(*kMore, each) || each->isNondeterministic();
  });
  return random;
}

bool ReadsOnlyShape(const ScriptNode* node) {
  static const auto* const kShape = new std::set<std::string>{"aten::size",
                                                              "aten::sym_size",
                                                              "aten::dim",
                                                              "aten::numel",
                                                              "aten::is_floating_point",
                                                              "prim::shape",
                                                              "prim::dtype",
                                                              "prim::device",
                                                              "prim::is_cuda",
                                                              "aten::is_complex",
                                                              "prim::layout",
                                                              "prim::is_cpu",
                                                              "aten::__is__",
                                                              "aten::__isnot__",
                                                              "aten::len"};
  return Contains(*kShape, node);
}

// Not empty_like and its kin, which ask for strides, too.
bool ReadsOnlyShapeOf(const ScriptNode* node, const ScriptValue* tensor) {
  static const auto* const kMakers = new std::set<std::string>{"aten::new_empty", "aten::new_full",
                                                               "aten::new_ones", "aten::new_zeros"};
  static const auto* const kLike = new std::set<std::string>{"aten::expand_as", "aten::reshape_as",
                                                             "aten::type_as", "aten::view_as"};
  const auto inputs = node->inputs();
  if (std::count(inputs.begin(), inputs.end(), tensor) != 1) return false;
  return (Contains(*kMakers, node) && inputs[0] == tensor) ||
         (Contains(*kLike, node) && inputs[1] == tensor);
}

std::vector<ScriptValue*> ReadBy(ScriptNode* node) {
  std::unordered_set<const ScriptValue*> known;
  std::vector<ScriptValue*> reads;
  CollectReads(node, &known, &reads);
  return reads;
}

bool IsNumberAsTensor(const ScriptValue* value) {
  const ScriptNode* node = value->node();
  if (node->kind() == prim::NumToTensor) return true;
  if (!IsTensor(value) || node->outputs().size() != 1 || !node->blocks().empty()) return false;
  bool any = false;
  for (const ScriptValue* input : node->inputs()) {
    if (!HoldsTensors(*input->type()) || IsConstant(input->node())) continue;
    if (!IsNumberAsTensor(input)) return false;
    any = true;
  }
  return any && !IsRandom(node);
}

const ScriptNode* FindDataRead(const ScriptValue* value) {
  std::unordered_set<const ScriptValue*> seen;
  return FindIn(value, &seen);
}

std::vector<c10::Symbol> AliasSets(const c10::Argument& argument) {
  std::vector<c10::Symbol> sets;
  if (argument.alias_info() != nullptr) AppendSets(*argument.alias_info(), &sets);
  return sets;
}

bool WritesTo(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && AnyWrite(*argument.alias_info());
}

}  // namespace stowage
