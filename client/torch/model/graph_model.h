// A network of any shape as the planner sees it: nodes that each make tensors, mostly one, from those of nodes before
// them.
//
// Nodes are vertices of the plan's graph in the order in which they are added, which is the program
// order. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_GRAPH_MODEL_H_
#define STOWAGE_CLIENT_TORCH_MODEL_GRAPH_MODEL_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/model/forward_function.h"
#include "client/torch/model/model_tensors.h"

namespace stowage {

// One of the tensors that a node makes. A number alone is the first, or only one.
struct NodeOutput {
  NodeOutput(int of, int which = 0) : node(of), index(which) {}  // NOLINT: implicit

  int node;
  int index;

  friend bool operator==(const NodeOutput& a, const NodeOutput& b) {
    return a.node == b.node && a.index == b.index;
  }
  friend bool operator!=(const NodeOutput& a, const NodeOutput& b) { return !(a == b); }
};

// A forward gets the tensors of ModelNode::inputs in their order, then the targets if the node reads them. What it
// returns are tensors that it made, views of its first input (all of them), or, of a node in place, its first input
// itself; of several that live in memory of other tensors, the step takes copies. Some of several may be undefined,
// the same each time, and some may ask for no gradient. It writes over nothing else, and trains and updates nothing
// that its node does not list.
struct ModelNode {
  std::string name;
  std::string op_kind;             // as that of ModelStage
  std::vector<NodeOutput> inputs;  // of nodes added before
  NodeFunction forward;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
  bool in_place = false;
  bool reads_target = false;
  bool detached = false;  // nothing flows back through it to its inputs, whatever they are
  // As those of ModelStage.
  bool random = false;
  bool stateful = false;
  bool must_keep = false;
  ModuleModes modes = {};
  int outputs = 1;  // how many tensors it returns; a plan keeps and drops them together
};

// Something for each tensor that nodes make.
template <class T>
class PerOutput {
 public:
  T& operator[](NodeOutput of) { return values_[Node(of)][static_cast<size_t>(of.index)]; }
  const T& operator[](NodeOutput of) const {
    return values_[Node(of)][static_cast<size_t>(of.index)];
  }
  std::vector<T>& of(int node) { return values_[static_cast<size_t>(node)]; }
  const std::vector<T>& of(int node) const { return values_[static_cast<size_t>(node)]; }
  void Add(std::vector<T> of_next_node) { values_.push_back(std::move(of_next_node)); }
  void clear() { values_.clear(); }

 private:
  static size_t Node(NodeOutput of) { return static_cast<size_t>(of.node); }

  std::vector<std::vector<T>> values_;
};

class GraphModel : public ModelTensors {
 public:
  explicit GraphModel(std::string name) : name_(std::move(name)) {}

  // A tensor that every step is given, or several in one node; they come in the order in which they are added. Returns
  // the node's number, as does AddNode.
  int AddInput(std::string name, int tensors = 1);

  // An input that no earlier node makes, or a node without inputs or function, is an error of status().
  int AddNode(ModelNode node);

  // Any module with Tensor forward(Tensor), on one input.
  template <class Module>
  auto AddModule(std::string name, std::string op_kind, NodeOutput input,
                 std::shared_ptr<Module> module) -> decltype(module->forward(at::Tensor()), int()) {
    ModelNode node;
    node.name = std::move(name);
    node.op_kind = std::move(op_kind);
    node.inputs = {input};
    node.parameters = module->parameters();
    node.buffers = module->buffers();
    node.modes = ModesOf(module, 0);
    node.forward = [module](const Tensors& x) { return module->forward(x[0]); };
    return AddNode(std::move(node));
  }

  // A module holder such as torch::nn::Linear.
  template <class Holder>
  auto AddModule(std::string name, std::string op_kind, NodeOutput input, Holder holder)
      -> decltype(holder.ptr(), int()) {
    return AddModule(std::move(name), std::move(op_kind), input, holder.ptr());
  }

  // A function without parameters.
  int AddFunction(std::string name, std::string op_kind, std::vector<NodeOutput> inputs,
                  NodeFunction forward, int outputs = 1);

  // Adds to node v what it does not list.
  void Complete(int v, const FoundState& found);
  // What a node makes is an output, of which the caller has a loss of his own; other nodes may read it, too. A model with
  // outputs has no losses of its own. What no node makes, or an input, is an error of status(); once more is no other
  // output.
  void MarkOutput(NodeOutput made);

  // OK, or INVALID_ARGUMENT about the first thing that is wrong: see AddNode. That a model has nothing
  // to train by is found when it is profiled.
  absl::Status status() const { return status_; }

  const std::string& name() const { return name_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  const ModelNode& node(int v) const { return nodes_[static_cast<size_t>(v)]; }
  bool is_input(int v) const { return !node(v).forward; }
  // The tensors that a step is given, in order.
  const std::vector<NodeOutput>& inputs() const { return inputs_; }
  // Nobody reads it: of a model without outputs a loss, if it is a scalar.
  bool is_unread(NodeOutput made) const { return !is_read_[made]; }
  // Whether a node makes something that nobody reads.
  bool has_unread(int v) const;
  // In the order in which they were marked.
  const std::vector<NodeOutput>& outputs() const { return outputs_; }
  bool is_output(NodeOutput made) const;
  // Whether a node makes one.
  bool has_output(int v) const;
  // Whether a backward of the model begins at `value`, which a node made: an output, or a loss where there are none.
  bool StartsBackward(NodeOutput made, const at::Tensor& value) const {
    if (!value.defined()) return false;
    return outputs_.empty() ? is_unread(made) && value.numel() == 1 : is_output(made);
  }

  // By node: whether its backward has anything to do, because it or a node before it trains, or is one of the inputs
  // `asking` for a gradient.
  std::vector<bool> NeedGradients(const std::vector<NodeOutput>& asking = {}) const;

  // A value of each tensor.
  template <class T>
  PerOutput<T> ForEachOutput(const T& value = T()) const {
    PerOutput<T> values;
    for (const ModelNode& made : nodes_) {
      values.Add(std::vector<T>(static_cast<size_t>(made.outputs), value));
    }
    return values;
  }

  // "node 3 (layer1.0, conv2d)".
  std::string Describe(int v) const;

 private:
  void Fail(const ModelNode& node, const std::string& rule);
  int Append(ModelNode node);
  bool Makes(NodeOutput made) const;

  std::string name_;
  std::vector<ModelNode> nodes_;
  std::vector<NodeOutput> inputs_;
  std::vector<NodeOutput> outputs_;
  PerOutput<char> is_read_;
  absl::Status status_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_GRAPH_MODEL_H_
