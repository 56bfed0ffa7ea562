#include "client/torch/execute/plain_step.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include <cstdint>
#include <map>
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
LossValue Train(const ChainModel& model, const at::Tensor& input, const at::Tensor& target) {
  const AutocastState autocast = AutocastState::Capture();
  const at::AutoGradMode grad(true);
  at::Tensor loss;
  {
    const AutocastScope scope(autocast);
    loss = model.loss()(PlainForward(model, input.variable_data()), target);
  }
  LossValue value;
  value.Add(loss);
  const AutocastScope off(autocast.Off());
  if (loss.requires_grad()) RunBackward({loss}, {});
  return value;
}

// By node, the last that reads it; itself if nobody does.
std::vector<int> LastReaders(const GraphModel& model) {
  std::vector<int> last;
  for (int v = 0; v < model.size(); ++v) {
    last.push_back(v);
    for (const int input : model.node(v).inputs) last[static_cast<size_t>(input)] = v;
  }
  return last;
}

LossValue TrainGraph(const GraphModel& model, std::vector<at::Tensor> inputs,
                     const at::Tensor& target) {
  const AutocastState autocast = AutocastState::Capture();
  const at::AutoGradMode grad(true);
  LossValue value;
  std::vector<at::Tensor> roots;
  std::vector<at::Tensor> gradients;
  {
    const AutocastScope scope(autocast);
    for (at::Tensor& loss : PlainLosses(model, std::move(inputs), target)) {
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

at::Tensor PlainForward(const ChainModel& model, at::Tensor input) {
  for (int l = 1; l <= model.length(); ++l) input = model.stage(l).forward(input);
  return input;
}

namespace {

// Marked outputs in their order; else losses in that of the nodes.
std::vector<at::Tensor> InOrder(const GraphModel& model, const std::map<int, at::Tensor>& made) {
  std::vector<at::Tensor> ordered;
  for (const int v : model.outputs()) ordered.push_back(made.at(v));
  if (!ordered.empty()) return ordered;
  for (const auto& [v, tensor] : made) ordered.push_back(tensor);
  return ordered;
}

}  // namespace

std::vector<at::Tensor> PlainOutputs(const GraphModel& model, std::vector<at::Tensor> inputs,
                                     const at::Tensor& target) {
  const std::vector<int> last = LastReaders(model);
  std::vector<at::Tensor> values(last.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    values[static_cast<size_t>(model.inputs()[i])] = std::move(inputs[i]);
  }
  std::map<int, at::Tensor> outputs;
  for (int v = 0; v < model.size(); ++v) {
    if (model.is_input(v)) continue;
    const ModelNode& node = model.node(v);
    std::vector<at::Tensor> read;
    for (const int input : node.inputs) read.push_back(values[static_cast<size_t>(input)]);
    for (const int input : node.inputs) {
      if (last[static_cast<size_t>(input)] == v) values[static_cast<size_t>(input)].reset();
    }
    if (node.reads_target) read.push_back(target);
    at::Tensor made = node.forward(read);
    if (model.StartsBackward(v, made)) outputs.emplace(v, made);
    if (last[static_cast<size_t>(v)] != v) values[static_cast<size_t>(v)] = std::move(made);
  }
  return InOrder(model, outputs);
}

std::vector<at::Tensor> PlainLosses(const GraphModel& model, std::vector<at::Tensor> inputs,
                                    const at::Tensor& target) {
  for (at::Tensor& input : inputs) input = input.variable_data();
  return PlainOutputs(model, std::move(inputs), target);
}

at::Tensor SumOf(std::vector<at::Tensor> losses) {
  at::Tensor sum;
  for (at::Tensor& loss : losses) sum = sum.defined() ? sum + loss : std::move(loss);
  if (sum.defined()) return sum;
  ThrowStatus(absl::InvalidArgumentError("no node that nobody reads makes a scalar"));
}

absl::StatusOr<StepReport> PlainGraphStep(const GraphModel& model, std::vector<at::Tensor> inputs,
                                          const at::Tensor& target, const StepMeters& meters) {
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
    const LossValue loss = TrainGraph(model, std::move(inputs), target);
    step.Stop();
    StepReport report;
    report.loss = loss.Get();
    step.Finish(&report);
    report.forwards = model.size() - static_cast<int>(model.inputs().size());
    before.Dismiss();
    return report;
  } catch (...) {
    return CurrentExceptionToStatus("plain training step", absl::StatusCode::kInternal);
  }
}

absl::StatusOr<StepReport> PlainStep(const ChainModel& model, const at::Tensor& input,
                                     const at::Tensor& target, const StepMeters& meters) {
  if (!model.loss()) return absl::InvalidArgumentError("the model has no loss");
  if (!input.defined()) return absl::InvalidArgumentError("the input is an undefined tensor");
  absl::StatusOr<MemoryMeter*> used_meter = MeterOrInstalled(meters.memory);
  if (!used_meter.ok()) return used_meter.status();
  try {
    model.EnsureGradients();
    StateGuard before(model.buffers(), input.device());
    StepMeter step(meters, *used_meter, Bytes(static_cast<int64_t>(input.nbytes())));
    const LossValue loss = Train(model, input, target);
    step.Stop();
    StepReport report;
    report.loss = loss.Get();
    step.Finish(&report);
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
