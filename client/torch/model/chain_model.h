// A sequential network as the planner sees it: stages that run one after the other, and a loss.
//
// A stage takes what the one before it makes, mostly one tensor, and side inputs: tensors of the batch beside the first,
// such as masks and positions, that stages read and that stay in memory for the whole step.
//
// The stages share the tensors of the caller's modules: an optimizer over parameters() trains the
// model. Every trainable parameter gets a zeroed gradient when its stage is added. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_CHAIN_MODEL_H_
#define STOWAGE_CLIENT_TORCH_MODEL_CHAIN_MODEL_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/torch/model/forward_function.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/model/model_tensors.h"

namespace stowage {

// A forward gets the tensors that the stage before makes, of the first stage the input, then the side inputs that the
// stage lists. It must not write over what it gets. The tensors that it returns must be such that it made, or views
// of its inputs, of a parameter or of a buffer; not such that it keeps between calls. Some of several may be
// undefined, the same each time, and some may ask for no gradient. It trains and updates nothing that its stage does
// not list.
struct ModelStage {
  std::string name;
  std::string op_kind;  // what it computes; part of the key of its plans; empty: FindState finds it
  StageFunction forward;
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> buffers;
  // Known to draw random numbers or to update buffers. The profiler also finds both by looking. A
  // stateful stage that lists no buffers is never recomputed: what it changes cannot be put back.
  bool random = false;
  bool stateful = false;
  // Must not run forward twice in a step, for a reason of the caller's.
  bool must_keep = false;
  // Of the modules that it runs, if any: part of what a plan is for, and what must not change between its forwards of a step.
  ModuleModes modes = {};
  int outputs = 1;  // how many tensors it returns; a plan keeps and drops them together
  std::vector<int> side_inputs = {};  // numbers of AddSideInput
};

class ChainModel : public ModelTensors {
 public:
  explicit ChainModel(std::string name) : name_(std::move(name)) {}

  void AddStage(ModelStage stage);

  // One more tensor that every step is given behind the input, for the stages that list it. Returns its number, from 0.
  int AddSideInput(std::string name);

  // Any module with Tensor forward(Tensor).
  template <class Module>
  auto AddStage(std::string name, std::string op_kind, std::shared_ptr<Module> module)
      -> decltype(module->forward(at::Tensor()), void()) {
    ModelStage stage;
    stage.name = std::move(name);
    stage.op_kind = std::move(op_kind);
    stage.parameters = module->parameters();
    stage.buffers = module->buffers();
    stage.modes = ModesOf(module, 0);
    stage.forward = [module](const at::Tensor& input) { return module->forward(input); };
    AddStage(std::move(stage));
  }

  // A module holder such as torch::nn::Linear.
  template <class Holder>
  auto AddStage(std::string name, std::string op_kind, Holder holder)
      -> decltype(holder.ptr(), void()) {
    AddStage(std::move(name), std::move(op_kind), holder.ptr());
  }

  // A function without parameters.
  void AddFunction(std::string name, std::string op_kind, StageFunction forward);

  // It gets what the last stage makes, and all targets.
  void SetLoss(std::string op_kind, LossFunction loss);

  // Adds to stage l, or L+1, the loss, what it does not list; of the loss, what it computes.
  void Complete(int l, const FoundState& found);

  // INVALID_ARGUMENT unless these are the input and all side inputs.
  absl::Status CheckInputs(const std::vector<at::Tensor>& inputs) const;
  // OK, or INVALID_ARGUMENT about the first stage that lists a side input that there is not, or makes nothing.
  absl::Status status() const { return status_; }

  const std::string& name() const { return name_; }
  // L, the loss not counted.
  int length() const { return static_cast<int>(stages_.size()); }
  // Stage l in 1..L.
  const ModelStage& stage(int l) const { return stages_[static_cast<size_t>(l) - 1]; }
  const std::vector<std::string>& side_inputs() const { return side_inputs_; }
  // What stage l, or L+1, gets, as tensors of InLine.
  std::vector<NodeOutput> InputsOf(int l) const;
  const std::string& loss_op_kind() const { return loss_op_kind_; }
  // Empty until SetLoss.
  const LossFunction& loss() const { return loss_; }

  // The same as a graph whose nodes are in line: node 0 is the input and the side inputs, node l stage l, the last one the
  // loss, if there is one and it is asked for; else what the last stage makes are outputs. All own their memory.
  GraphModel InLine(bool with_loss = true) const;

  // "stage 3 (layer1.0, bottleneck)"; for L+1 "the loss (cross_entropy)", for 0 "the input".
  std::string Describe(int l) const;

 private:
  std::string name_;
  std::vector<ModelStage> stages_;
  std::string loss_op_kind_;
  LossFunction loss_;
  std::vector<std::string> side_inputs_;
  absl::Status status_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_CHAIN_MODEL_H_
