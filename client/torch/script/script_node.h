// What the TorchScript importer asks of single nodes and values of a graph, most of it answered by the
// schemas of their ops. Not thread-safe, as graphs are not.
#ifndef STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_NODE_H_
#define STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_NODE_H_

#include <ATen/core/function_schema.h>
#include <ATen/core/jit_type.h>
#include <torch/csrc/jit/ir/ir.h>

#include <functional>
#include <string>
#include <vector>

namespace stowage {

using ScriptNode = torch::jit::Node;
using ScriptValue = torch::jit::Value;

bool HoldsTensors(const c10::Type& type);
// A tensor, and no optional one.
bool IsTensor(const ScriptValue* value);

// "aten::relu_ at model.py:3:4"; "aten::relu_" if it is not known where it came from.
std::string Describe(const ScriptNode* node);

// The op alone: "relu_".
std::string ShortName(const ScriptNode* node);

bool IsConstant(const ScriptNode* node);
// Puts values into a list or tuple, or takes them out of one.
bool IsPacking(const ScriptNode* node);
bool IsUnpacking(const ScriptNode* node);

// Calls `visit` for the node and all nodes in its blocks.
void VisitNested(const ScriptNode* node, const std::function<void(const ScriptNode*)>& visit);

// It, or a node in its blocks,
bool HasEffects(const ScriptNode* node);  // does something beside making its outputs: raises, say
bool IsRandom(const ScriptNode* node);    // draws random numbers
// It asks tensors for no more than their shape, type and device.
bool ReadsOnlyShape(const ScriptNode* node);
// The same of one tensor that it reads, whatever it does with others: as new_zeros, or expand_as of the
// tensor to be like.
bool ReadsOnlyShapeOf(const ScriptNode* node, const ScriptValue* tensor);

// Its inputs, and what its blocks read of what is outside of them; each once.
std::vector<ScriptValue*> ReadBy(ScriptNode* node);

// A tensor that stands for a number and follows from numbers alone, as tracing makes them of sizes.
bool IsNumberAsTensor(const ScriptValue* value);

// The node at which what a tensor holds becomes a number, a flag or such, from which `value` follows;
// null if it follows from shapes and constants alone.
const ScriptNode* FindDataRead(const ScriptValue* value);

// The alias sets of an argument or result, and whether the op writes over it.
std::vector<c10::Symbol> AliasSets(const c10::Argument& argument);
bool WritesTo(const c10::Argument& argument);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SCRIPT_SCRIPT_NODE_H_
