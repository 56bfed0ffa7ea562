#include "client/torch/chain_executor.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/torch/model_state.h"
#include "client/torch/saved_tensor_scope.h"
#include "client/torch/step_run.h"
#include "client/torch/torch_status.h"
#include "solvers/schedule/evaluator.h"

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

// A smaller batch saves less.
void CheckParts(const std::vector<StoragePtr>& parts, const std::vector<Bytes>& listed) {
  if (parts.size() != listed.size()) {
    throw ImmovableError(absl::StrCat("its graph saves ", parts.size(),
                                      " tensors of its own, the profile lists ", listed.size()));
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    const Bytes bytes(static_cast<int64_t>(parts[k]->nbytes()));
    if (bytes <= listed[k]) continue;
    throw ImmovableError(absl::StrCat("saved tensor ", k + 1, " has ", bytes.value(),
                                      " bytes, in the profile ", listed[k].value()));
  }
}

}  // namespace

ChainExecutor::ChainExecutor(const ChainModel* model, Chain chain, Schedule schedule,
                             Simulation prediction, ExecutionDevice* device,
                             std::optional<BatchShape> batch)
    : model_(model),
      chain_(std::move(chain)),
      schedule_(std::move(schedule)),
      prediction_(prediction),
      device_(device),
      batch_(std::move(batch)),
      moves_saved_(static_cast<size_t>(model->length()) + 2, false),
      moves_parts_(moves_saved_.size(), false) {
  for (const Instruction& i : schedule_) {
    if (i.op != Op::kOffloadStart) continue;
    const auto l = static_cast<size_t>(i.stage);
    if (i.tensor == TensorKind::kSaved) moves_saved_[l] = true;
    if (i.part > 0) moves_parts_[l] = true;
    if (i.tensor == TensorKind::kActivation && l == 0) moves_input_ = true;
  }
}

absl::StatusOr<std::unique_ptr<ChainExecutor>> ChainExecutor::Create(
    const ChainModel* model, Chain chain, Schedule schedule, ExecutionDevice* device,
    std::optional<BatchShape> batch) {
  const absl::StatusOr<ExecutionDevice*> used = DeviceOrInstalled(device);
  if (!used.ok()) return used.status();
  absl::Status status = CheckCarriedOut(schedule, **used);
  if (status.ok()) status = CheckChain(*model, chain);
  if (!status.ok()) return status;
  const TransferModel* const link = (*used)->link();
  absl::StatusOr<Simulation> prediction = link == nullptr
                                              ? Evaluator(chain).Run(schedule)
                                              : Evaluator(Instance(chain, *link)).Run(schedule);
  if (!prediction.ok()) return prediction.status();
  return std::unique_ptr<ChainExecutor>(new ChainExecutor(
      model, std::move(chain), std::move(schedule), *prediction, *used, std::move(batch)));
}

// What of it can go to the host, if the schedule moves anything of it.
std::vector<StoragePtr> ChainExecutor::ForwardSaving(int l, StepState* state, SavedForward* saved) {
  const auto run = [&] {
    *saved = state->runner.ForwardSaving(l, state->held.Activation(l - 1));
    return saved->output;
  };
  if (!moves_saved_[static_cast<size_t>(l)]) {
    run();
    return {};
  }
  std::vector<StoragePtr> parts = MovableParts(device_, run);
  if (moves_parts_[static_cast<size_t>(l)]) CheckParts(parts, chain_.stage(l).saved_tensors);
  return parts;
}

void ChainExecutor::RunForward(const Instruction& instruction, StepState* state) {
  const int l = instruction.stage;
  if (instruction.op == Op::kForwardSave) {
    SavedForward saved;
    std::vector<StoragePtr> parts = ForwardSaving(l, state, &saved);
    state->held.PutSaved(l, std::move(saved), std::move(parts));
  } else {
    state->held.PutPlain(l, state->runner.Forward(l, state->held.Activation(l - 1)));
  }
  if (instruction.op == Op::kForwardNoSaveFreeInput) state->held.DropPlain(l - 1);
  if (l > model_->length()) state->report.loss = state->held.Activation(l).item<double>();
}

void ChainExecutor::Run(const Instruction& instruction, StepState* state) {
  const int l = instruction.stage;
  switch (instruction.op) {
    case Op::kForwardSave:
    case Op::kForwardNoSave:
    case Op::kForwardNoSaveFreeInput:
      RunForward(instruction, state);
      break;
    case Op::kBackward:
      state->gradient = state->runner.Backward(l, state->held.Saved(l), std::move(state->gradient));
      state->held.DropSaved(l);
      state->held.DropPlain(l - 1);
      break;
    case Op::kDiscard:
      state->held.Discard(instruction.tensor, l);
      break;
    case Op::kDropSavedKeepOutput:
      state->held.DropSavedKeepOutput(l);
      break;
    case Op::kOffloadStart:
    case Op::kOffloadWait:
    case Op::kPrefetchStart:
    case Op::kPrefetchWait:
      state->held.Transfer(instruction);
      break;
  }
}

absl::Status ChainExecutor::RunUpTo(size_t end, StepState* state) {
  const InstructionRunner runner{device_, [&](const Instruction& i) { Run(i, state); },
                                 [this](int l) { return model_->Describe(l); },
                                 state->recorder.get()};
  return RunInstructions(schedule_, end, runner, &state->next, &state->report);
}

absl::Status ChainExecutor::CheckInput(const at::Tensor& input) const {
  if (!input.defined()) return absl::InvalidArgumentError("the input is an undefined tensor");
  absl::Status status = CheckIsOn(*device_, input, "the input");
  if (status.ok() && batch_) status = batch_->CheckInput(input);
  if (!status.ok()) return status;
  const Bytes input_bytes(static_cast<int64_t>(input.nbytes()));
  if (input_bytes > chain_.activation(0)) {
    return absl::InvalidArgumentError(absl::StrCat("the input has ", input_bytes.value(),
                                                   " bytes, the profile's ",
                                                   chain_.activation(0).value()));
  }
  return absl::OkStatus();
}

absl::StatusOr<StepReport> ChainExecutor::Step(const at::Tensor& input, const at::Tensor& target) {
  absl::Status fits = CheckInput(input);
  if (fits.ok() && batch_) fits = batch_->CheckTarget(target);
  if (!fits.ok()) return fits;
  try {
    model_->EnsureGradients();
    StateGuard before(model_->buffers());
    const bool lends = CanLend(input, *device_) && StoragePtrOf(input) != StoragePtrOf(target);
    const bool copies = moves_input_ && !lends;
    StepState state{StageRunner(model_),
                    HeldTensors(model_->length() + 1, copies ? input.clone() : input, device_)};
    state.runner.BeginStep(target, gradient_ready_);
    const Bytes bytes(static_cast<int64_t>(input.nbytes()));
    if (measured_ != nullptr) state.recorder = std::make_unique<StepRecorder>(device_, bytes);
    const StepMeter step(device_->meter(), bytes, device_->host());
    absl::Status status = RunUpTo(schedule_.size(), &state);
    step.Finish(&state.report);
    const absl::Status released = state.held.Release();
    if (status.ok()) status = released;
    if (!status.ok()) return status;
    state.report.forwards = state.runner.forwards();
    state.report.recomputed_forwards = state.runner.recomputed_forwards();
    state.report.offloaded = state.held.copies().offloaded();
    state.report.prefetched = state.held.copies().prefetched();
    before.Dismiss();
    if (state.recorder) *measured_ = state.recorder->Finish(schedule_, state.report);
    return state.report;
  } catch (...) {
    return CurrentExceptionToStatus("training step", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
