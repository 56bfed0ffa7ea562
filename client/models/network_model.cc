#include "client/models/network_model.h"

#include <torch/nn/functional/loss.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace stowage {
namespace {

bool IsTied(const Network& network, const NetworkModelOptions& options) {
  return options.tied_embedding || network.tied_embedding;
}

// The state of every op of a network, by op.
std::vector<OpState> MakeStates(const Network& network, const NetworkModelOptions& options) {
  std::vector<OpState> states;
  const OpState* embedding = nullptr;
  states.reserve(network.ops.size());
  for (size_t i = 0; i < network.ops.size(); ++i) {
    states.push_back(MakeOpState(network, i, options.device));
    OpState& state = states.back();
    if (network.ops[i].kind == OpKind::kEmbedding) embedding = &state;
    const bool ties = IsTied(network, options) && embedding != nullptr &&
                      network.ops[i].kind == OpKind::kLinear &&
                      state.weight.sizes() == embedding->weight.sizes();
    if (ties) state.weight = embedding->weight;
  }
  return states;
}

std::vector<at::Tensor> ParametersOf(const OpState& state) {
  std::vector<at::Tensor> parameters;
  if (state.weight.defined()) parameters.push_back(state.weight);
  if (state.bias.defined()) parameters.push_back(state.bias);
  return parameters;
}

class StageOps {
 public:
  StageOps(const Network& network, const NetworkStage& stage, const std::vector<OpState>& states,
           OpFunction run_op)
      : run_op_(std::move(run_op)), first_(stage.first_op) {
    for (size_t i = stage.first_op; i < stage.end_op; ++i) {
      ops_.push_back(network.ops[i]);
      states_.push_back(states[i]);
    }
    last_reader_.resize(ops_.size() + 1, ops_.size());
    for (size_t k = 0; k < ops_.size(); ++k) {
      for (const size_t input : ops_[k].inputs) last_reader_[Slot(input)] = k;
    }
  }

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> parameters;
    for (const OpState& state : states_) {
      for (at::Tensor& parameter : ParametersOf(state)) parameters.push_back(std::move(parameter));
    }
    return parameters;
  }

  std::vector<at::Tensor> buffers() const {
    std::vector<at::Tensor> buffers;
    for (const OpState& state : states_) {
      buffers.insert(buffers.end(), state.statistics.begin(), state.statistics.end());
    }
    return buffers;
  }

  at::Tensor Forward(const at::Tensor& input) const {
    std::vector<at::Tensor> values(ops_.size() + 1);
    values[0] = input;
    for (size_t k = 0; k < ops_.size(); ++k) {
      std::vector<at::Tensor> inputs;
      for (const size_t read : ops_[k].inputs) inputs.push_back(values[Slot(read)]);
      for (const size_t read : ops_[k].inputs) {
        if (last_reader_[Slot(read)] == k) values[Slot(read)].reset();
      }
      values[k + 1] = run_op_(ops_[k], states_[k], std::move(inputs));
    }
    return values.back();
  }

 private:
  // Of values: the stage's input, then its ops.
  size_t Slot(size_t op) const { return op + 1 - first_; }

  const OpFunction run_op_;
  const size_t first_;
  std::vector<NetworkOp> ops_;
  std::vector<OpState> states_;
  std::vector<size_t> last_reader_;  // by slot
};

at::Tensor CrossEntropy(const at::Tensor& output, const at::Tensor& target) {
  const at::Tensor rows = output.dim() > 2 ? output.flatten(0, -2) : output;
  return torch::nn::functional::cross_entropy(rows, target.flatten());
}

}  // namespace

ChainModel ChainModelOf(const Network& network, const NetworkModelOptions& options) {
  const std::vector<OpState> states = MakeStates(network, options);
  ChainModel model(network.name);
  for (size_t i = 0; i + 1 < network.stages.size(); ++i) {
    const auto ops =
        std::make_shared<const StageOps>(network, network.stages[i], states, options.run_op);
    ModelStage stage;
    stage.name = network.stages[i].name;
    stage.op_kind = network.stages[i].op_kind;
    stage.parameters = ops->parameters();
    stage.buffers = ops->buffers();
    stage.forward = [ops](const at::Tensor& input) { return ops->Forward(input); };
    model.AddStage(std::move(stage));
  }
  model.SetLoss(network.stages.back().op_kind, CrossEntropy);
  return model;
}

GraphModel GraphModelOf(const Network& network, const NetworkModelOptions& options) {
  const std::vector<OpState> states = MakeStates(network, options);
  const std::vector<std::string> names = OpNames(network);
  GraphModel model(network.name);
  model.AddInput(names[0]);
  for (size_t i = 1; i < network.ops.size(); ++i) {
    const NetworkOp& op = network.ops[i];
    ModelNode node;
    node.name = names[i];
    node.op_kind = NameOf(op.kind);
    for (const size_t input : op.inputs) node.inputs.emplace_back(static_cast<int>(input));
    node.parameters = ParametersOf(states[i]);
    node.buffers = states[i].statistics;
    node.in_place = op.in_place;
    node.reads_target = op.kind == OpKind::kNllLoss;
    node.forward = [op, state = states[i], run_op = options.run_op](
                       const std::vector<at::Tensor>& inputs) { return run_op(op, state, inputs); };
    model.AddNode(std::move(node));
  }
  return model;
}

}  // namespace stowage
