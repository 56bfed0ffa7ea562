#include "client/torch/chain_executor.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/model_state.h"
#include "client/torch/one_stream.h"
#include "client/torch/torch_status.h"
#include "client/torch/tracking_allocator.h"

namespace stowage {
namespace {

absl::Status CheckChain(const ChainModel& model, const Chain& chain) {
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

}  // namespace

struct ChainExecutor::StepState {
  StageRunner runner;
  HeldTensors held;
  at::Tensor gradient;  // of the activation whose backward is next
  StepReport report;
};

ChainExecutor::ChainExecutor(const ChainModel* model, Chain chain, Schedule schedule,
                             Simulation prediction, MemoryMeter* meter,
                             std::optional<BatchShape> batch)
    : model_(model),
      chain_(std::move(chain)),
      schedule_(std::move(schedule)),
      prediction_(prediction),
      meter_(meter),
      batch_(std::move(batch)) {}

absl::StatusOr<std::unique_ptr<ChainExecutor>> ChainExecutor::Create(
    const ChainModel* model, Chain chain, Schedule schedule, MemoryMeter* meter,
    std::optional<BatchShape> batch) {
  absl::Status status = CheckOneStream(schedule);
  if (status.ok()) status = CheckChain(*model, chain);
  if (!status.ok()) return status;
  absl::StatusOr<Simulation> prediction = Simulate(chain, schedule);
  if (!prediction.ok()) return prediction.status();
  absl::StatusOr<MemoryMeter*> used_meter = MeterOrInstalled(meter);
  if (!used_meter.ok()) return used_meter.status();
  return std::unique_ptr<ChainExecutor>(
      new ChainExecutor(model, std::move(chain), std::move(schedule), *std::move(prediction),
                        *used_meter, std::move(batch)));
}

void ChainExecutor::RunForward(const Instruction& instruction, StepState* state) {
  const int l = instruction.stage;
  const at::Tensor& input = state->held.Activation(l - 1);
  if (instruction.op == Op::kForwardKeepAll) {
    state->held.PutSaved(l, state->runner.ForwardSaving(l, input));
  } else {
    state->held.PutPlain(l, state->runner.Forward(l, input));
  }
  if (instruction.op == Op::kForwardKeepNothing) state->held.DropPlain(l - 1);
  if (l > model_->length()) state->report.loss = state->held.Activation(l).item<double>();
}

void ChainExecutor::Run(const Instruction& instruction, StepState* state) {
  const int l = instruction.stage;
  switch (instruction.op) {
    case Op::kForwardKeepAll:
    case Op::kForwardKeepInput:
    case Op::kForwardKeepNothing:
      RunForward(instruction, state);
      break;
    case Op::kBackward:
      state->gradient = state->runner.Backward(l, state->held.Saved(l), std::move(state->gradient));
      state->held.DropSaved(l);
      state->held.DropPlain(l - 1);
      break;
    case Op::kDiscard:
      instruction.tensor == TensorKind::kSaved ? state->held.DropSaved(l)
                                               : state->held.DropPlain(l);
      break;
    case Op::kReduce:
      state->held.Reduce(l);
      break;
    case Op::kOffloadStart:
    case Op::kOffloadWait:
    case Op::kPrefetchStart:
    case Op::kPrefetchWait:
      throw std::logic_error("a transfer passed Create");
  }
  ++state->report.counts[static_cast<size_t>(instruction.op)];
}

absl::Status ChainExecutor::RunAll(StepState* state) {
  for (size_t i = 0; i < schedule_.size(); ++i) {
    try {
      Run(schedule_[i], state);
    } catch (...) {
      return CurrentExceptionToStatus(absl::StrCat("instruction ", i, " (", ToString(schedule_[i]),
                                                   "), ", model_->Describe(schedule_[i].stage)),
                                      absl::StatusCode::kInternal);
    }
  }
  return absl::OkStatus();
}

absl::Status ChainExecutor::CheckBatch(const at::Tensor& input, const at::Tensor& target) const {
  if (!input.defined()) return absl::InvalidArgumentError("the input is an undefined tensor");
  if (batch_) {
    absl::Status status = batch_->CheckFits(input, target);
    if (!status.ok()) return status;
  }
  const Bytes input_bytes(static_cast<int64_t>(input.nbytes()));
  if (input_bytes > chain_.activation(0)) {
    return absl::InvalidArgumentError(absl::StrCat("the input has ", input_bytes.value(),
                                                   " bytes, the profile's ",
                                                   chain_.activation(0).value()));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepReport> ChainExecutor::Step(const at::Tensor& input, const at::Tensor& target) {
  absl::Status fits = CheckBatch(input, target);
  if (!fits.ok()) return fits;
  try {
    model_->EnsureGradients();
    StateGuard before(model_->buffers());
    StepState state{StageRunner(model_), HeldTensors(model_->length() + 1, input), {}, {}};
    const StepMeter step(meter_, Bytes(static_cast<int64_t>(input.nbytes())));
    state.runner.BeginStep(target);
    absl::Status status = RunAll(&state);
    if (!status.ok()) return status;
    step.Finish(&state.report);
    state.report.forwards = state.runner.forwards();
    state.report.recomputed_forwards = state.runner.recomputed_forwards();
    before.Dismiss();
    return state.report;
  } catch (...) {
    return CurrentExceptionToStatus("training step", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
