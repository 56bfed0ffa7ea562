// A network of the user's own, from a file that torch.jit.save wrote, ready to be trained: as a graph with a
// loss behind it, on a random batch.
#ifndef STOWAGE_CLIENT_MODELS_SCRIPTED_NETWORK_H_
#define STOWAGE_CLIENT_MODELS_SCRIPTED_NETWORK_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/models/input_spec.h"
#include "client/models/network_loss.h"
#include "client/torch/execute/loss_value.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/model/graph_model.h"

namespace torch {
namespace jit {
struct Module;
}  // namespace jit
}  // namespace torch

namespace stowage {

struct ScriptedOptions {
  std::string path;
  std::vector<InputSpec> inputs;  // by argument of forward
  LossKind loss = LossKind::kCrossEntropy;
  uint64_t seed = 0;  // of the batch: equal seeds, equal batches
  // Module and batch go there. What the module's code itself puts on a device stays where that says.
  c10::Device device{c10::kCPU};
};

// Not thread-safe.
class ScriptedNetwork {
 public:
  // Runs one forward without gradients; buffers and random state are afterwards what they were.
  //
  // INVALID_ARGUMENT made by FieldError, with the names "script", "input" and "loss": the file cannot be
  // read or is no TorchScript; the module cannot be cut (what ScriptModel refuses, with the op and its
  // place in the source), takes another number of inputs, has nothing to train; forward throws on
  // inputs of these shapes (the node, and LibTorch's first sentence); the loss does not fit what it
  // returns. RESOURCE_EXHAUSTED: no memory.
  static absl::StatusOr<ScriptedNetwork> Load(const ScriptedOptions& options);

  // Its last node is the loss.
  const GraphModel& model() const { return model_; }
  const std::vector<at::Tensor>& inputs() const { return inputs_; }
  // Undefined where the loss needs none.
  const at::Tensor& target() const { return target_; }

  // What it is, takes, returns and trains, for people: one line each.
  const std::vector<std::string>& description() const { return description_; }

  // A step of plain training of the module itself, as it was loaded: its own forward, op by op, the same loss,
  // one backward. What plans of the model are to be held against. Errors and what they leave: as
  // PlainGraphStep.
  absl::StatusOr<StepReport> PlainStep(std::vector<at::Tensor> inputs, const at::Tensor& target,
                                       const StepMeters& meters = {}) const;

 private:
  ScriptedNetwork(GraphModel model, NetworkLoss loss)
      : model_(std::move(model)), loss_(std::move(loss)) {}
  friend class ScriptedNetworkMaker;

  LossValue Train(std::vector<at::Tensor> inputs, const at::Tensor& target) const;

  GraphModel model_;
  NetworkLoss loss_;
  std::shared_ptr<torch::jit::Module> module_;
  std::vector<at::Tensor> inputs_;
  at::Tensor target_;
  std::vector<std::string> description_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_MODELS_SCRIPTED_NETWORK_H_
