#include "client/torch/execute/plain_step.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <utility>

#include "client/torch/base/tensor_storage.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/loss_value.h"
#include "client/torch/execute/run_backward.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/autocast_state.h"
#include "client/torch/model/model_state.h"

namespace stowage {
namespace {

// The loss, the device told to do the backward.
LossValue Train(const ChainModel& model, Tensors inputs, const Tensors& targets) {
  const AutocastState autocast = AutocastState::Capture();
  const at::AutoGradMode grad(true);
  at::Tensor loss;
  {
    const AutocastScope scope(autocast);
    for (at::Tensor& input : inputs) input = input.variable_data();
    loss = model.loss()(PlainForwardAll(model, std::move(inputs)), targets);
  }
  LossValue value;
  value.Add(loss);
  const AutocastScope off(autocast.Off());
  if (loss.requires_grad()) RunBackward({loss}, {});
  return value;
}

// The last node that reads each tensor; the one that makes it if nobody does.
PerOutput<int> LastReaders(const GraphModel& model) {
  PerOutput<int> last = model.ForEachOutput<int>();
  for (int v = 0; v < model.size(); ++v) {
    for (int& reader : last.of(v)) reader = v;
    for (const NodeOutput input : model.node(v).inputs) last[input] = v;
  }
  return last;
}

LossValue TrainGraph(const GraphModel& model, std::vector<at::Tensor> inputs,
                     const Tensors& targets) {
  const AutocastState autocast = AutocastState::Capture();
  const at::AutoGradMode grad(true);
  LossValue value;
  std::vector<at::Tensor> roots;
  std::vector<at::Tensor> gradients;
  {
    const AutocastScope scope(autocast);
    for (at::Tensor& loss : PlainLosses(model, std::move(inputs), targets)) {
      if (!loss.defined()) continue;
      value.Add(loss);
      if (!loss.requires_grad()) continue;
      if (!model.outputs().empty()) gradients.push_back(at::ones_like(loss));
      roots.push_back(std::move(loss));
    }
  }
  const AutocastScope off(autocast.Off());
  if (!roots.empty()) RunBackward(roots, gradients);
  return value;
}

}  // namespace

Tensors PlainForwardAll(const ChainModel& model, Tensors inputs) {
  const Tensors sides(inputs.begin() + 1, inputs.end());
  Tensors x{std::move(inputs.front())};
  inputs.clear();
  for (int l = 1; l <= model.length(); ++l) {
    const ModelStage& stage = model.stage(l);
    for (const int side : stage.side_inputs) x.push_back(sides[static_cast<size_t>(side)]);
    x = stage.forward(x);
  }
  return x;
}

at::Tensor PlainForward(const ChainModel& model, at::Tensor input) {
  return PlainForwardAll(model, std::move(input)).front();
}

namespace {

// Marked outputs in their order; else losses in that of the nodes.
std::vector<at::Tensor> InOrder(const GraphModel& model, const PerOutput<at::Tensor>& made) {
  std::vector<at::Tensor> ordered;
  for (const NodeOutput output : model.outputs()) ordered.push_back(made[output]);
  if (!ordered.empty()) return ordered;
  for (int v = 0; v < model.size(); ++v) {
    for (const at::Tensor& tensor : made.of(v)) {
      if (tensor.defined()) ordered.push_back(tensor);
    }
  }
  return ordered;
}

}  // namespace

std::vector<at::Tensor> PlainOutputs(const GraphModel& model, std::vector<at::Tensor> inputs,
                                     const Tensors& targets) {
  const PerOutput<int> last = LastReaders(model);
  PerOutput<at::Tensor> values = model.ForEachOutput<at::Tensor>();
  PerOutput<at::Tensor> outputs = values;
  for (size_t i = 0; i < inputs.size(); ++i) values[model.inputs()[i]] = std::move(inputs[i]);
  for (int v = 0; v < model.size(); ++v) {
    if (model.is_input(v)) continue;
    const ModelNode& node = model.node(v);
    Tensors read;
    for (const NodeOutput input : node.inputs) read.push_back(values[input]);
    for (const NodeOutput input : node.inputs) {
      if (last[input] == v) values[input].reset();
    }
    if (node.reads_target) {
      read.insert(read.end(), targets.begin(), targets.end());
      if (targets.empty()) read.emplace_back();
    }
    Tensors made = node.forward(read);
    for (int i = 0; i < node.outputs; ++i) {
      const NodeOutput of(v, i);
      at::Tensor& tensor = made.at(static_cast<size_t>(i));
      if (model.StartsBackward(of, tensor)) outputs[of] = tensor;
      if (last[of] != v) values[of] = std::move(tensor);
    }
  }
  return InOrder(model, outputs);
}

std::vector<at::Tensor> PlainLosses(const GraphModel& model, std::vector<at::Tensor> inputs,
                                    const Tensors& targets) {
  for (at::Tensor& input : inputs) input = input.variable_data();
  return PlainOutputs(model, std::move(inputs), targets);
}

at::Tensor SumOf(std::vector<at::Tensor> losses) {
  at::Tensor sum;
  for (at::Tensor& loss : losses) sum = sum.defined() ? sum + loss : std::move(loss);
  if (sum.defined()) return sum;
  ThrowStatus(absl::InvalidArgumentError("no node that nobody reads makes a scalar"));
}

absl::StatusOr<StepReport> PlainGraphStep(const GraphModel& model, std::vector<at::Tensor> inputs,
                                          const Tensors& targets, const StepMeters& meters) {
  if (!model.status().ok()) return model.status();
  if (inputs.size() != model.inputs().size()) {
    return absl::InvalidArgumentError("not as many inputs as the model reads");
  }
  absl::StatusOr<MemoryMeter*> used_meter = MeterOrInstalled(meters.memory);
  if (!used_meter.ok()) return used_meter.status();
  try {
    model.EnsureGradients();
    StateGuard before(model.buffers(), DeviceOf(inputs));
    int64_t input_bytes = 0;
    for (const at::Tensor& input : inputs) input_bytes += static_cast<int64_t>(input.nbytes());
    StepMeter step(meters, *used_meter, Bytes(input_bytes));
    const LossValue loss = TrainGraph(model, std::move(inputs), targets);
    step.Stop();
    StepReport report;
    step.Finish(loss, &report);
    report.forwards = model.size() - static_cast<int>(model.inputs().size());
    before.Dismiss();
    return report;
  } catch (...) {
    return CurrentExceptionToStatus("plain training step", absl::StatusCode::kInternal);
  }
}

absl::StatusOr<StepReport> PlainStep(const ChainModel& model, const Tensors& inputs,
                                     const Tensors& targets, const StepMeters& meters) {
  if (!model.status().ok()) return model.status();
  if (!model.loss()) return absl::InvalidArgumentError("the model has no loss");
  absl::Status status = model.CheckInputs(inputs);
  if (!status.ok()) return status;
  absl::StatusOr<MemoryMeter*> used_meter = MeterOrInstalled(meters.memory);
  if (!used_meter.ok()) return used_meter.status();
  try {
    model.EnsureGradients();
    StateGuard before(model.buffers(), DeviceOf(inputs));
    int64_t input_bytes = 0;
    for (const at::Tensor& input : inputs) input_bytes += static_cast<int64_t>(input.nbytes());
    StepMeter step(meters, *used_meter, Bytes(input_bytes));
    const LossValue loss = Train(model, inputs, targets);
    step.Stop();
    StepReport report;
    step.Finish(loss, &report);
    report.forwards = model.length() + 1;
    report.counts[static_cast<size_t>(Op::kForwardSave)] = report.forwards;
    report.counts[static_cast<size_t>(Op::kBackward)] = report.forwards;
    before.Dismiss();
    return report;
  } catch (...) {
    return CurrentExceptionToStatus("plain training step", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
