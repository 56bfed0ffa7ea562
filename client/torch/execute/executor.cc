#include "client/torch/execute/executor.h"

#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/plan_cursor.h"
#include "client/torch/execute/step_run.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

absl::Status CheckProblem(const ChainModel& model, const Chain& chain) {
  if (!model.status().ok()) return model.status();
  if (!model.loss()) return absl::InvalidArgumentError("the model has no loss");
  if (chain.length() != model.length()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the chain has ", chain.length(), " stages, the model ", model.length()));
  }
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const std::string& op_kind =
        l <= model.length() ? model.stage(l).op_kind : model.loss_op_kind();
    if (chain.stage(l).op_kind == op_kind) continue;
    return absl::InvalidArgumentError(absl::StrCat("the chain says '", chain.stage(l).op_kind,
                                                   "' where the model has ", model.Describe(l)));
  }
  return absl::OkStatus();
}

bool SameInputs(const ModelNode& node, const Vertex& vertex) {
  if (node.inputs.size() != vertex.inputs.size()) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].node != vertex.inputs[i].vertex) return false;
  }
  return true;
}

absl::Status CheckProblem(const GraphModel& model, const Graph& graph) {
  if (!model.status().ok()) return model.status();
  if (graph.size() != model.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph has ", graph.size(), " vertices, the model ", model.size()));
  }
  for (int v = 0; v < graph.size(); ++v) {
    const Vertex& vertex = graph.vertex(v);
    if (vertex.op_kind == model.node(v).op_kind && SameInputs(model.node(v), vertex)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("the graph says '", vertex.op_kind, "' with ", vertex.inputs.size(),
                     " inputs where the model has ", model.Describe(v), " or others"));
  }
  return absl::OkStatus();
}

// What a stage saves after its backward has no reader, and no graph that could hold it.
absl::Status CheckSavesAreRead(const Schedule& schedule) {
  std::set<int> done;
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[i].op == Op::kBackward) done.insert(schedule[i].stage);
    if (schedule[i].op != Op::kForwardSave || done.count(schedule[i].stage) == 0) continue;
    return absl::UnimplementedError(absl::StrCat("instruction ", i, " (", ToString(schedule[i]),
                                                 "): its backward has run, and nothing else reads "
                                                 "what it saves"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Simulation> Predict(Instance instance, const Schedule& schedule) {
  return Evaluator(std::move(instance)).Run(schedule);
}

// A recomputed forward could not do what the first one did: the tangents and the levels of torch.func are gone by then.
absl::Status CheckNoOtherDifferentiation(const std::vector<at::Tensor>& inputs,
                                         const std::vector<at::Tensor>& parameters) {
  if (c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode)) {
    return absl::UnimplementedError(
        "a planned step within a transform of torch.func, such as grad or vmap");
  }
  for (const std::vector<at::Tensor>* const tensors : {&inputs, &parameters}) {
    for (const at::Tensor& tensor : *tensors) {
      if (!tensor.defined() || !tensor._fw_grad(/*level=*/0).defined()) continue;
      return absl::UnimplementedError("a planned step has no forward-mode gradient");
    }
  }
  return absl::OkStatus();
}

template <class Problem>
absl::StatusOr<Simulation> Predict(const Problem& problem, const ExecutionDevice& device,
                                   const Schedule& schedule) {
  if (device.link() == nullptr) return Predict(Instance(problem), schedule);
  return Predict(Instance(problem, *device.link()), schedule);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const ChainModel* model, Chain chain,
                                                           Schedule schedule,
                                                           ExecutionDevice* device,
                                                           std::optional<BatchShape> batch) {
  return OfChain(model, std::move(chain), std::move(schedule), /*callers_loss=*/-1, device,
                 std::move(batch));
}

absl::StatusOr<std::unique_ptr<Executor>> Executor::OfChain(const ChainModel* model, Chain chain,
                                                            Schedule schedule, int callers_loss,
                                                            ExecutionDevice* device,
                                                            std::optional<BatchShape> batch) {
  const absl::StatusOr<ExecutionDevice*> used = DeviceOrInstalled(device);
  if (!used.ok()) return used.status();
  absl::Status status = CheckCarriedOut(schedule, **used);
  if (status.ok()) status = CheckSavesAreRead(schedule);
  if (status.ok()) status = CheckProblem(*model, chain);
  if (!status.ok()) return status;
  const absl::StatusOr<Simulation> prediction = Predict(chain, **used, schedule);
  if (!prediction.ok()) return prediction.status();
  return std::unique_ptr<Executor>(new Executor(
      MakeChainPlan(*model, std::move(chain), std::move(schedule), *used, callers_loss),
      *prediction, std::move(batch)));
}

absl::StatusOr<std::unique_ptr<Executor>> Executor::Create(const GraphModel* model, Graph graph,
                                                           Schedule schedule,
                                                           ExecutionDevice* device) {
  if (!graph.has_backwards()) {
    return FieldError("profile.dag", "set", "must be a graph: autograd runs the backwards");
  }
  const absl::StatusOr<ExecutionDevice*> used = DeviceOrInstalled(device);
  if (!used.ok()) return used.status();
  absl::Status status = CheckCarriedOut(schedule, **used);
  if (status.ok()) status = CheckProblem(*model, graph);
  if (!status.ok()) return status;
  const absl::StatusOr<Simulation> prediction = Predict(graph, **used, schedule);
  if (!prediction.ok()) return prediction.status();
  return std::unique_ptr<Executor>(
      new Executor(MakeGraphPlan(model, std::move(graph), std::move(schedule), *used), *prediction,
                   std::nullopt));
}

absl::Status Executor::CheckInputs(const std::vector<at::Tensor>& inputs) const {
  absl::Status plain = CheckNoOtherDifferentiation(inputs, plan_->model->parameters());
  if (!plain.ok()) return plain;
  const std::vector<NodeOutput>& read = plan_->model->inputs();
  if (inputs.size() != read.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there are ", inputs.size(), " inputs, the model reads ", read.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = plan_->NameOfSource(read[i]);
    if (!inputs[i].defined()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " is an undefined tensor"));
    }
    absl::Status status = CheckIsOn(*plan_->device, inputs[i], name);
    if (!status.ok()) return status;
  }
  absl::Status fits = batch_ ? batch_->CheckInputs(inputs) : absl::OkStatus();
  Bytes bytes;  // of one node
  for (size_t i = 0; i < inputs.size() && fits.ok(); ++i) {
    if (i == 0 || read[i].node != read[i - 1].node) bytes = Bytes(0);
    bytes += Bytes(static_cast<int64_t>(inputs[i].nbytes()));
    const Bytes planned = plan_->SourceBytes(read[i]).value_or(bytes);
    if (bytes <= planned) continue;
    return absl::InvalidArgumentError(absl::StrCat(plan_->NameOfSource(read[i]), " has ",
                                                   bytes.value(), " bytes, in the profile ",
                                                   planned.value()));
  }
  return fits;
}

std::vector<at::Tensor> Executor::SourcesOf(std::vector<at::Tensor> inputs, const Tensors& targets,
                                            bool lent) const {
  std::vector<at::Tensor> sources;
  for (size_t i = 0; i < inputs.size(); ++i) {
    sources.push_back(
        SourceFor(*plan_, plan_->model->inputs()[i], std::move(inputs[i]), targets, lent));
  }
  return sources;
}

absl::StatusOr<StepReport> Executor::Step(std::vector<at::Tensor> inputs, const Tensors& targets) {
  if (plan_->callers_loss()) {
    return absl::InvalidArgumentError(
        "the model has outputs, of which the caller has the loss: see PlannedModule");
  }
  absl::Status fits = CheckInputs(inputs);
  if (fits.ok() && batch_) fits = batch_->CheckTargets(targets);
  if (!fits.ok()) return fits;
  Bytes bytes;
  for (const at::Tensor& input : inputs) bytes += Bytes(static_cast<int64_t>(input.nbytes()));
  try {
    if (measured_ != nullptr || !plan_->in_engine_order) plan_->model->EnsureGradients();
    return RunStep(plan_, SourcesOf(std::move(inputs), targets, /*lent=*/true), targets, bytes,
                   gradient_ready_, measured_);
  } catch (...) {
    return CurrentExceptionToStatus("training step", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
