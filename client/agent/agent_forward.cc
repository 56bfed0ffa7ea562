// Steps that an agent begins and whose backward is the caller's.
#include <c10/core/GradMode.h>

#include <mutex>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/agent/agent.h"

namespace stowage {

// Its end is told by whatever thread ends it, and noted by the agent's.
struct Agent::BegunStep {
  BatchSignature signature;  // of the plan
  Digest plan;
  StepStart start;
  bool own = false;
  bool shadow = false;
  bool overlaps = false;

  std::mutex mutex;
  std::optional<StepEnd> end;
  StepPeaks peaks;
};

bool Agent::Trains(const Batch& batch) const {
  return at::GradMode::is_enabled() &&
         (AnyTrains(batch.inputs) || AnyTrains(model_->tensors().parameters()));
}

void Agent::Overlap() {
  for (const std::shared_ptr<BegunStep>& step : begun_) step->overlaps = true;
}

std::shared_ptr<Agent::BegunStep> Agent::Begin(const StepStart& start, const PlannedShape& by) {
  Overlap();
  auto step = std::make_shared<BegunStep>();
  step->signature = by.signature;
  if (by.adopted) step->plan = by.adopted->digest;
  step->start = start;
  step->overlaps = !begun_.empty();
  return step;
}

OnStepEnd Agent::TellsOf(const std::shared_ptr<BegunStep>& step) {
  return [step](StepEnd end) {
    const std::lock_guard<std::mutex> lock(step->mutex);
    step->peaks = PeaksSince(step->start);
    step->end = std::move(end);
  };
}

absl::StatusOr<std::vector<at::Tensor>> Agent::Forward(Batch batch) {
  const absl::Status listed = CheckBatch(batch);
  if (!listed.ok()) return listed;
  NoteEnded();
  if (!Trains(batch)) {
    Overlap();
    return model_->PlainForward(std::move(batch));
  }
  const auto plain_step = [this](Batch whole) {
    Overlap();
    ++steps_.plain;
    return model_->PlainForward(std::move(whole));
  };
  if (!agreed_ && SwitchedOff()) return plain_step(std::move(batch));
  PlannedShape* const shape = FindOrAddShape(batch);
  if (options_.shadow) return ShadowForward(std::move(batch), shape);
  const absl::StatusOr<PlannedShape*> by = ShapeOfStep(batch, /*whole=*/false, shape);
  if (!by.ok()) return by.status();
  if (*by == nullptr) return plain_step(std::move(batch));
  arenas_.Release();
  const absl::StatusOr<StepStart> start = StartOf(batch);
  if (!start.ok()) return start.status();
  const std::shared_ptr<BegunStep> step = Begin(*start, **by);
  step->own = *by == shape;
  absl::StatusOr<std::vector<at::Tensor>> outputs =
      (*by)->step->Forward(std::move(batch), options_.measure_steps, TellsOf(step));
  if (outputs.ok()) {
    begun_.push_back(step);
  } else {
    NoteEnd(outputs.status(), *start, PeaksSince(*start), /*retries=*/false, step->own,
            /*alone=*/!step->overlaps, *by);
  }
  return outputs;
}

absl::StatusOr<at::Tensor> Agent::Forward(const at::Tensor& input, const Tensors& target) {
  absl::StatusOr<std::vector<at::Tensor>> outputs = Forward({{input}, target});
  if (!outputs.ok()) return outputs.status();
  if (outputs->size() == 1) return std::move(outputs->front());
  return absl::InvalidArgumentError(
      absl::StrCat("the model has ", outputs->size(), " outputs, not one"));
}

absl::StatusOr<std::vector<at::Tensor>> Agent::ShadowForward(Batch batch, PlannedShape* shape) {
  PlanForShadow(batch, shape);
  const absl::StatusOr<StepStart> start = StartOf(batch);
  if (!start.ok()) return start.status();
  const std::shared_ptr<BegunStep> step = Begin(*start, *shape);
  step->shadow = true;
  absl::StatusOr<std::vector<at::Tensor>> outputs = ForwardOfPlainStep(
      {start->meter, options_.device}, start->input,
      [&] { return model_->PlainForward(std::move(batch)); }, TellsOf(step));
  if (outputs.ok()) begun_.push_back(step);
  return outputs;
}

void Agent::NoteEnded() {
  std::vector<std::shared_ptr<BegunStep>> ended;
  std::vector<std::shared_ptr<BegunStep>> open;
  for (std::shared_ptr<BegunStep>& step : begun_) {
    const std::lock_guard<std::mutex> lock(step->mutex);
    (step->end ? ended : open).push_back(step);
  }
  begun_ = std::move(open);
  for (const std::shared_ptr<BegunStep>& step : ended) NoteEnd(*step);
  NoteTimes(/*waits=*/false);
}

void Agent::NoteEnd(const BegunStep& step) {
  const absl::StatusOr<StepReport>& report = step.end->report;
  if (absl::IsCancelled(report.status())) {
    ++steps_.dropped;
    return;
  }
  PlannedShape* const by = table_.Find(step.signature);
  if (step.shadow) {
    if (report.ok()) NoteShadow(*report, !step.overlaps, by);
    return;
  }
  // Another plan may have come since.
  if (by == nullptr || by->step == nullptr || by->adopted->digest != step.plan) {
    if (report.ok()) ++(step.own ? steps_.planned : steps_.by_larger);
    return;
  }
  if (report.ok() && options_.measure_steps) measured_ = step.end->measured;
  NoteEnd(report, step.start, step.peaks, /*retries=*/false, step.own, !step.overlaps, by);
}

}  // namespace stowage
