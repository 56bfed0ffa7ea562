// The primitive ways to run a node of a GraphModel. Profiler and executor both go through here, so
// that what one measures is what the other does.
//
// A forward of the same node again in a step is a recompute: see RepeatableForward. Forwards run under
// the autocast that was in force when the step began, backwards without. Functions throw what LibTorch
// and the nodes throw, and StageRuleError. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_NODE_RUNNER_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_NODE_RUNNER_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <optional>
#include <vector>

#include "client/torch/base/tensors.h"
#include "client/torch/execute/parameter_gradients.h"
#include "client/torch/execute/repeatable_forward.h"
#include "client/torch/execute/saved_slots.h"
#include "client/torch/model/autocast_state.h"
#include "client/torch/model/graph_model.h"

namespace stowage {

// What a saving forward leaves: the graph hangs on the outputs; leaves and passed share the storages of
// the inputs.
struct SavedNode {
  // By input; equal inputs, equal tensors.
  std::vector<at::Tensor> leaves;
  // What the node got: the leaf itself where no gradient is asked for, else a tensor behind it, at which
  // what other readers give comes in.
  std::vector<at::Tensor> passed;
  std::vector<at::Tensor> outputs;
  // By input, where the backward leaves their gradients.
  std::shared_ptr<std::vector<at::Tensor>> gradients;
};

// The same memory, no graph.
std::vector<at::Tensor> WithoutGraphs(const std::vector<at::Tensor>& tensors);

class NodeRunner {
 public:
  // The model must outlive the runner. `device`: that it runs on. `in_line`: backwards are as chains account them. Gradients
  // of outputs are there to the end, and those of inputs that are expanded, or slices, are laid out anew.
  NodeRunner(const GraphModel* model, c10::Device device, bool in_line = false)
      : model_(model), device_(device), in_line_(in_line) {}

  // By node: runs forward no more than once in a step. To be said before a step begins; outlives the runner.
  void ExpectOnce(const std::vector<bool>* once) { once_ = once; }
  // Forgets which nodes have run. `targets` go to the nodes that read them; `asking` are inputs of the model that ask for
  // a gradient.
  void BeginStep(Tensors targets, OnGradientReady ready = {},
                 const std::vector<NodeOutput>& asking = {});
  // The same where the caller's own backward adds up the parameters' gradients: no Backward follows.
  void BeginForwards(Tensors targets, const std::vector<NodeOutput>& asking = {});

  // `inputs` are plain tensors, one for each of the node's inputs. Saves nothing: by the same kernels as with a graph,
  // which is gone at the end.
  std::vector<at::Tensor> Forward(int v, const std::vector<at::Tensor>& inputs);
  // The same, and the graph is kept.
  SavedNode ForwardSaving(int v, const std::vector<at::Tensor>& inputs);
  // With a graph of its own, in whatever scope the caller has for what that saves.
  SavedNode RunWithGraph(int v, const std::vector<at::Tensor>& inputs);
  // Again, for nothing but what the slots of its first forward own: ends at the last of these, or runs not at all where
  // there is none.
  void ForwardStopped(int v, const std::vector<at::Tensor>& inputs, SavedSlots* slots);
  // Storages that others hold than what v saves: those of its inputs, outputs, parameters and buffers, and the targets.
  std::vector<const c10::StorageImpl*> HeldByOthers(int v, const std::vector<at::Tensor>& inputs,
                                                    const std::vector<at::Tensor>& outputs) const;
  // In a graph of the caller's: `passed` are the node's inputs as they are in it, equal ones one tensor.
  std::vector<at::Tensor> ForwardInGraph(int v, const std::vector<at::Tensor>& passed);
  // Uses up the graph, given `gradients` of the outputs, and adds to the parameters' gradients (those of tied ones
  // after their last backward), and returns those of the inputs: by input, once for equal ones, undefined where there
  // is none. `running` is what other readers have given to the inputs so far, or undefined: the node's own is added
  // to it as autograd would add it, one by one. An undefined gradient means that nothing flows back to that output;
  // where `starts`, what a backward begins at (GraphModel::StartsBackward) has ones instead.
  //
  // Each gradient has memory of its own, which plain training may share between several, and is as
  // contiguous, or not, as it is there: on that depends in which order kernels add up.
  std::vector<at::Tensor> Backward(int v, SavedNode saved, std::vector<at::Tensor> gradients,
                                   std::vector<at::Tensor> running, bool starts = true);

  // The parameters of each node.
  std::vector<std::vector<at::Tensor>> Parts() const;

  // In place of the Backward of a node that is not its own GradientOwner.
  void PassBackward(int v) { gradients_->Finish(v); }

  // What holds the gradient of a tensor: itself, unless its node handed its first input on as it is. Known once that has
  // run forward.
  NodeOutput GradientOwner(NodeOutput made) const;
  // Of a node that has run: whether it did so.
  bool hands_on(int v) const { return hands_on_[static_cast<size_t>(v)]; }

  bool has_run(int v) const { return runs_[static_cast<size_t>(v)].has_run(); }
  bool needs_gradient(int v) const { return needs_gradient_[static_cast<size_t>(v)]; }
  // Of what has been made: whether it asks its readers for one.
  bool gives_gradient(NodeOutput made) const { return gives_gradient_[made] != 0; }
  int forwards() const { return forwards_; }
  int recomputed_forwards() const { return recomputed_forwards_; }

 private:
  bool RunsOnce(int v) const { return once_ != nullptr && (*once_)[static_cast<size_t>(v)]; }
  void CheckModes(int v);
  void CountForward(int v);
  Tensors Call(int v, const std::vector<at::Tensor>& inputs);
  Tensors CallOnce(int v, Tensors inputs);
  at::Tensor LeafOf(NodeOutput input, const at::Tensor& value) const;
  std::vector<at::Tensor> BackwardOf(int v, SavedNode saved, std::vector<at::Tensor> gradients,
                                     std::vector<at::Tensor> running, bool starts);
  at::Tensor OwnOrView(const ModelNode& node, at::Tensor output, const at::Tensor& first,
                       const std::vector<at::Tensor>& inputs) const;
  Tensors OwnOrViews(Tensors outputs, const at::Tensor& first,
                     const std::vector<at::Tensor>& inputs) const;
  bool IsForeign(const c10::StorageImpl* storage, const std::vector<at::Tensor>& inputs) const;

  const GraphModel* model_;
  c10::Device device_;
  bool in_line_;
  Tensors targets_;  // one at least, undefined where there is none
  std::vector<const c10::StorageImpl*> model_storages_;  // of parameters and buffers, sorted
  const std::vector<bool>* once_ = nullptr;
  std::vector<RepeatableForward> runs_;   // by node
  std::vector<std::vector<bool>> modes_;  // of their modules, when they first ran
  std::vector<bool> needs_gradient_;
  PerOutput<char> gives_gradient_;
  std::vector<bool> hands_on_;
  AutocastState autocast_;
  std::optional<ParameterGradients> gradients_;
  int forwards_ = 0;
  int recomputed_forwards_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_NODE_RUNNER_H_
