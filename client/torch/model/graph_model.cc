#include "client/torch/model/graph_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stowage {

int GraphModel::AddInput(std::string name) {
  ModelNode node;
  node.name = std::move(name);
  node.op_kind = "Input";
  nodes_.push_back(std::move(node));
  is_read_.push_back(false);
  inputs_.push_back(size() - 1);
  return size() - 1;
}

void GraphModel::Fail(const ModelNode& node, const std::string& rule) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat("node ", size(), " (", node.name, ", ", node.op_kind, "): ", rule));
}

int GraphModel::AddNode(ModelNode node) {
  if (!node.forward) Fail(node, "has no forward function");
  if (node.inputs.empty()) Fail(node, "has no inputs: what comes from outside is an AddInput");
  for (const int input : node.inputs) {
    if (input < 0 || input >= size()) {
      Fail(node, absl::StrCat("reads node ", input, ", which is not one before it"));
      continue;
    }
    is_read_[static_cast<size_t>(input)] = true;
  }
  AddTensors(node.parameters, node.buffers, node.modes);
  nodes_.push_back(std::move(node));
  is_read_.push_back(false);
  return size() - 1;
}

int GraphModel::AddFunction(std::string name, std::string op_kind, std::vector<int> inputs,
                            NodeFunction forward) {
  ModelNode node;
  node.name = std::move(name);
  node.op_kind = std::move(op_kind);
  node.inputs = std::move(inputs);
  node.forward = std::move(forward);
  return AddNode(std::move(node));
}

void GraphModel::MarkOutput(int v) {
  if (v < 0 || v >= size() || is_input(v)) {
    if (!status_.ok()) return;
    status_ = absl::InvalidArgumentError(
        absl::StrCat("output ", v, " is no node of the ", size(), " that compute something"));
    return;
  }
  if (!is_output(v)) outputs_.push_back(v);
}

bool GraphModel::is_output(int v) const {
  return std::find(outputs_.begin(), outputs_.end(), v) != outputs_.end();
}

std::vector<bool> GraphModel::NeedGradients(const std::vector<int>& asking) const {
  std::vector<bool> needs;
  for (const ModelNode& node : nodes_) {
    const bool asks =
        std::find(asking.begin(), asking.end(), static_cast<int>(needs.size())) != asking.end();
    const bool passes_on = std::any_of(node.inputs.begin(), node.inputs.end(), [&needs](int input) {
      return needs[static_cast<size_t>(input)];
    });
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
