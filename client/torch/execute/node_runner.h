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
#include <unordered_set>
#include <vector>

#include "client/torch/execute/parameter_gradients.h"
#include "client/torch/execute/repeatable_forward.h"
#include "client/torch/execute/saved_slots.h"
#include "client/torch/model/autocast_state.h"
#include "client/torch/model/graph_model.h"

namespace stowage {

// What a saving forward leaves: the graph hangs on the output; leaves and passed share the storages of
// the inputs.
struct SavedNode {
  // By input; equal inputs, equal tensors.
  std::vector<at::Tensor> leaves;
  // What the node got: the leaf itself where no gradient is asked for, else a tensor behind it, at which
  // what other readers give comes in.
  std::vector<at::Tensor> passed;
  at::Tensor output;
  // By input, where the backward leaves their gradients.
  std::shared_ptr<std::vector<at::Tensor>> gradients;
};

class NodeRunner {
 public:
  // The model must outlive the runner. `device`: that it runs on. `in_line`: backwards are as chains account them. The gradient of the output is
  // there to the end, and one of the input that is expanded, or a slice, is laid out anew.
  NodeRunner(const GraphModel* model, c10::Device device, bool in_line = false)
      : model_(model), device_(device), in_line_(in_line) {}

  // Forgets which nodes have run. `target` goes to the nodes that read it; `asking` are inputs of the model that ask for
  // a gradient.
  void BeginStep(at::Tensor target, OnGradientReady ready = {},
                 const std::vector<int>& asking = {});
  // The same where the caller's own backward adds up the parameters' gradients: no Backward follows.
  void BeginForwards(at::Tensor target, const std::vector<int>& asking = {});

  // `inputs` are plain tensors, one for each of the node's inputs. Saves nothing: by the same kernels as with a graph,
  // which is gone at the end.
  at::Tensor Forward(int v, const std::vector<at::Tensor>& inputs);
  // The same, and the graph is kept.
  SavedNode ForwardSaving(int v, const std::vector<at::Tensor>& inputs);
  // With a graph of its own, in whatever scope the caller has for what that saves.
  SavedNode RunWithGraph(int v, const std::vector<at::Tensor>& inputs);
  // Again, for nothing but what the slots of its first forward own: ends at the last of these, or runs not at all where
  // there is none.
  void ForwardStopped(int v, const std::vector<at::Tensor>& inputs, SavedSlots* slots);
  // Storages that others hold than what v saves: those of its inputs, output, parameters and buffers, and the target.
  std::unordered_set<const c10::StorageImpl*> HeldByOthers(int v,
                                                           const std::vector<at::Tensor>& inputs,
                                                           const at::Tensor& output) const;
  // In a graph of the caller's: `passed` are the node's inputs as they are in it, equal ones one tensor.
  at::Tensor ForwardInGraph(int v, const std::vector<at::Tensor>& passed);
  // Uses up the graph, adds to the parameters' gradients (those of tied ones after their last
  // backward), and returns those of the inputs: by input, once for equal ones, undefined where there is none. `running` is what other readers have given to
  // the inputs so far, or undefined: the node's own is added to it as autograd would add it, one
  // by one. An undefined `gradient` means that nothing flows back, except into what a backward begins
  // at (GraphModel::StartsBackward), which starts with ones.
  //
  // Each gradient has memory of its own, which plain training may share between several, and is as
  // contiguous, or not, as it is there: on that depends in which order kernels add up.
  std::vector<at::Tensor> Backward(int v, SavedNode saved, at::Tensor gradient,
                                   std::vector<at::Tensor> running);

  // The parameters of each node.
  std::vector<std::vector<at::Tensor>> Parts() const;

  // In place of the Backward of a node that is not its own Giver.
  void PassBackward(int v) { gradients_->Finish(v); }

  // The node that holds the gradient of v: v itself, unless it handed its first input on as it is. Known
  // once v has run forward.
  int Giver(int v) const;

  bool has_run(int v) const { return runs_[static_cast<size_t>(v)].has_run(); }
  bool needs_gradient(int v) const { return needs_gradient_[static_cast<size_t>(v)]; }
  int forwards() const { return forwards_; }
  int recomputed_forwards() const { return recomputed_forwards_; }

 private:
  void CheckModes(int v);
  void CountForward(int v);
  at::Tensor Call(int v, const std::vector<at::Tensor>& inputs);
  at::Tensor CallOnce(int v, std::vector<at::Tensor> inputs);
  at::Tensor LeafOf(int input, const at::Tensor& value) const;
  std::vector<at::Tensor> BackwardOf(int v, SavedNode saved, at::Tensor gradient,
                                     std::vector<at::Tensor> running);
  at::Tensor OwnOrView(const ModelNode& node, at::Tensor output, const at::Tensor& first,
                       const std::vector<at::Tensor>& inputs) const;

  const GraphModel* model_;
  c10::Device device_;
  bool in_line_;
  at::Tensor target_;
  std::unordered_set<const c10::StorageImpl*> model_storages_;  // of parameters and buffers
  std::vector<RepeatableForward> runs_;                         // by node
  std::vector<std::vector<bool>> modes_;  // of their modules, when they first ran
  std::vector<bool> needs_gradient_;
  std::vector<bool>
      gives_gradient_;  // by node that has run: whether its output asks its readers for one
  std::vector<bool> hands_on_;
  AutocastState autocast_;
  std::optional<ParameterGradients> gradients_;
  int forwards_ = 0;
  int recomputed_forwards_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_NODE_RUNNER_H_
