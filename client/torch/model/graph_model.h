// A network of any shape as the planner sees it: nodes that each make one tensor from those of nodes
// before them.
//
// Nodes are vertices of the plan's graph in the order in which they are added, which is the program
// order. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_GRAPH_MODEL_H_
#define STOWAGE_CLIENT_TORCH_MODEL_GRAPH_MODEL_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/model/model_tensors.h"

namespace stowage {

// The forward of one node. `inputs` are those of ModelNode::inputs in their order, then the target if
// the node reads it. What it returns is a tensor that it made, a view of its first input, or, of a
// node in place, its first input itself. It writes over nothing else, and trains and updates nothing
// that its node does not list.
using NodeFunction = std::function<at::Tensor(const std::vector<at::Tensor>& inputs)>;

struct ModelNode {
  std::string name;
  std::string op_kind;      // as that of ModelStage
  std::vector<int> inputs;  // numbers of nodes added before
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
};

class GraphModel : public ModelTensors {
 public:
  explicit GraphModel(std::string name) : name_(std::move(name)) {}

  // A tensor that every step is given; they come in the order in which they are added. Returns the
  // node's number, as does AddNode.
  int AddInput(std::string name);

  // An input that is no earlier node, or a node without inputs or function, is an error of status().
  int AddNode(ModelNode node);

  // Any module with Tensor forward(Tensor), on one input.
  template <class Module>
  auto AddModule(std::string name, std::string op_kind, int input, std::shared_ptr<Module> module)
      -> decltype(module->forward(at::Tensor()), int()) {
    ModelNode node;
    node.name = std::move(name);
    node.op_kind = std::move(op_kind);
    node.inputs = {input};
    node.parameters = module->parameters();
    node.buffers = module->buffers();
    node.modes = ModesOf(module, 0);
    node.forward = [module](const std::vector<at::Tensor>& x) { return module->forward(x[0]); };
    return AddNode(std::move(node));
  }

  // A module holder such as torch::nn::Linear.
  template <class Holder>
  auto AddModule(std::string name, std::string op_kind, int input, Holder holder)
      -> decltype(holder.ptr(), int()) {
    return AddModule(std::move(name), std::move(op_kind), input, holder.ptr());
  }

  // A function without parameters.
  int AddFunction(std::string name, std::string op_kind, std::vector<int> inputs,
                  NodeFunction forward);

  // Adds to node v what it does not list.
  void Complete(int v, const FoundState& found);
  // What v makes is an output, of which the caller has a loss of his own; other nodes may read it, too. A model with outputs
  // has no losses of its own. A number that is no node, or an input's, is an error of status(); once more is no other
  // output.
  void MarkOutput(int v);

  // OK, or INVALID_ARGUMENT about the first thing that is wrong: see AddNode. That a model has nothing
  // to train by is found when it is profiled.
  absl::Status status() const { return status_; }

  const std::string& name() const { return name_; }
  int size() const { return static_cast<int>(nodes_.size()); }
  const ModelNode& node(int v) const { return nodes_[static_cast<size_t>(v)]; }
  bool is_input(int v) const { return !node(v).forward; }
  // Nodes that are inputs, in order.
  const std::vector<int>& inputs() const { return inputs_; }
  // Nobody reads it: of a model without outputs a loss, if it makes a scalar.
  bool is_unread(int v) const { return !is_read_[static_cast<size_t>(v)]; }
  // In the order in which they were marked.
  const std::vector<int>& outputs() const { return outputs_; }
  bool is_output(int v) const;
  // Whether a backward of the model begins at v, which made `value`: an output, or a loss where there are none.
  bool StartsBackward(int v, const at::Tensor& value) const {
    return outputs_.empty() ? is_unread(v) && value.numel() == 1 : is_output(v);
  }

  // By node: whether its backward has anything to do, because it or a node before it trains, or is one of the inputs
  // `asking` for a gradient.
  std::vector<bool> NeedGradients(const std::vector<int>& asking = {}) const;

  // "node 3 (layer1.0, conv2d)".
  std::string Describe(int v) const;

 private:
  void Fail(const ModelNode& node, const std::string& rule);

  std::string name_;
  std::vector<ModelNode> nodes_;
  std::vector<int> inputs_;
  std::vector<int> outputs_;
  std::vector<bool> is_read_;
  absl::Status status_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_GRAPH_MODEL_H_
