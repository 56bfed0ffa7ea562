#include "client/torch/model/graph_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stowage {

int GraphModel::Append(ModelNode node) {
  is_read_.Add(std::vector<char>(static_cast<size_t>(node.outputs), 0));
  nodes_.push_back(std::move(node));
  return size() - 1;
}

int GraphModel::AddInput(std::string name, int tensors) {
  ModelNode node;
  node.name = std::move(name);
  node.op_kind = "Input";
  node.outputs = std::max(tensors, 1);
  for (int i = 0; i < node.outputs; ++i) inputs_.emplace_back(size(), i);
  return Append(std::move(node));
}

bool GraphModel::Makes(NodeOutput made) const {
  return made.node >= 0 && made.node < size() && made.index >= 0 &&
         made.index < node(made.node).outputs;
}

void GraphModel::Fail(const ModelNode& node, const std::string& rule) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat("node ", size(), " (", node.name, ", ", node.op_kind, "): ", rule));
}

int GraphModel::AddNode(ModelNode node) {
  if (!node.forward) Fail(node, "has no forward function");
  if (node.inputs.empty()) Fail(node, "has no inputs: what comes from outside is an AddInput");
  if (node.outputs < 1) Fail(node, "makes no tensor");
  if (node.outputs > 1 && node.in_place) Fail(node, "works in place and makes several tensors");
  node.outputs = std::max(node.outputs, 1);
  for (const NodeOutput input : node.inputs) {
    if (Makes(input)) {
      is_read_[input] = 1;
      continue;
    }
    const std::string which = input.index == 0 ? "" : absl::StrCat("tensor ", input.index, " of ");
    Fail(node, absl::StrCat("reads ", which, "node ", input.node, ", which is not one before it"));
  }
  AddTensors(node.parameters, node.buffers, node.modes);
  return Append(std::move(node));
}

int GraphModel::AddFunction(std::string name, std::string op_kind, std::vector<NodeOutput> inputs,
                            NodeFunction forward, int outputs) {
  ModelNode node;
  node.name = std::move(name);
  node.op_kind = std::move(op_kind);
  node.inputs = std::move(inputs);
  node.forward = std::move(forward);
  node.outputs = outputs;
  return AddNode(std::move(node));
}

void GraphModel::MarkOutput(NodeOutput made) {
  if (!Makes(made) || is_input(made.node)) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat("output ", made.node, made.index == 0 ? "" : absl::StrCat(".", made.index),
                     " is no node of the ", size(), " that compute something"));
    return;
  }
  if (!is_output(made)) outputs_.push_back(made);
}

bool GraphModel::is_output(NodeOutput made) const {
  return std::find(outputs_.begin(), outputs_.end(), made) != outputs_.end();
}

bool GraphModel::has_output(int v) const {
  return std::any_of(outputs_.begin(), outputs_.end(),
                     [v](NodeOutput made) { return made.node == v; });
}

bool GraphModel::has_unread(int v) const {
  const std::vector<char>& read = is_read_.of(v);
  return std::find(read.begin(), read.end(), 0) != read.end();
}

std::vector<bool> GraphModel::NeedGradients(const std::vector<NodeOutput>& asking) const {
  std::vector<bool> needs;
  for (const ModelNode& node : nodes_) {
    const auto v = static_cast<int>(needs.size());
    const bool asks = std::any_of(asking.begin(), asking.end(),
                                  [v](NodeOutput input) { return input.node == v; });
    const bool passes_on =
        std::any_of(node.inputs.begin(), node.inputs.end(),
                    [&needs](NodeOutput input) { return needs[static_cast<size_t>(input.node)]; });
    needs.push_back(!node.detached && (asks || passes_on || AnyTrains(node.parameters)));
  }
  return needs;
}

void GraphModel::Complete(int v, const FoundState& found) {
  ModelNode& node = nodes_[static_cast<size_t>(v)];
  AddFound(found, &node.op_kind, &node.parameters, &node.buffers);
}

std::string GraphModel::Describe(int v) const {
  return absl::StrCat("node ", v, " (", node(v).name, ", ", node(v).op_kind, ")");
}

}  // namespace stowage
