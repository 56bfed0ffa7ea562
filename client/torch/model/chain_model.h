// A sequential network as the planner sees it: stages that run one after the other, and a loss.
//
// The stages share the tensors of the caller's modules: an optimizer over parameters() trains the
// model. Every trainable parameter gets a zeroed gradient when its stage is added. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_CHAIN_MODEL_H_
#define STOWAGE_CLIENT_TORCH_MODEL_CHAIN_MODEL_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/torch/model/graph_model.h"
#include "client/torch/model/model_tensors.h"

namespace stowage {

// The forward of one stage. It must not write over its input. The tensor that it returns must be one
// that it made, or a view of its input, of a parameter or of a buffer; not one that it keeps between
// calls. It trains and updates nothing that its stage does not list.
using StageFunction = std::function<at::Tensor(const at::Tensor& input)>;
using LossFunction = std::function<at::Tensor(const at::Tensor& output, const at::Tensor& target)>;

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
};

class ChainModel : public ModelTensors {
 public:
  explicit ChainModel(std::string name) : name_(std::move(name)) {}

  void AddStage(ModelStage stage);

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

  void SetLoss(std::string op_kind, LossFunction loss);

  // Adds to stage l, or L+1, the loss, what it does not list; of the loss, what it computes.
  void Complete(int l, const FoundState& found);

  const std::string& name() const { return name_; }
  // L, the loss not counted.
  int length() const { return static_cast<int>(stages_.size()); }
  // Stage l in 1..L.
  const ModelStage& stage(int l) const { return stages_[static_cast<size_t>(l) - 1]; }
  const std::string& loss_op_kind() const { return loss_op_kind_; }
  // Empty until SetLoss.
  const LossFunction& loss() const { return loss_; }

  // The same as a graph whose nodes are in line: node 0 is the input, node l stage l, the last one the loss, if there is
  // one and it is asked for; else the last stage is marked as output. Their outputs own their memory.
  GraphModel InLine(bool with_loss = true) const;

  // "stage 3 (layer1.0, bottleneck)"; for L+1 "the loss (cross_entropy)", for 0 "the input".
  std::string Describe(int l) const;

 private:
  std::string name_;
  std::vector<ModelStage> stages_;
  std::string loss_op_kind_;
  LossFunction loss_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_CHAIN_MODEL_H_
