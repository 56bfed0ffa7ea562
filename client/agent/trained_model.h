// What an agent trains, whatever its shape: measured, executed by a schedule, or trained plain.
#ifndef STOWAGE_CLIENT_AGENT_TRAINED_MODEL_H_
#define STOWAGE_CLIENT_AGENT_TRAINED_MODEL_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/agent/batch.h"
#include "client/torch/execute/backward_end.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/model/chain_model.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/model/model_tensors.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/offload/later.h"
#include "client/torch/profile/chain_profiler.h"
#include "client/torch/profile/device_description.h"
#include "solvers/model/device.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Trains by one schedule. Not thread-safe.
//
// Here alone whole steps and begun ones part; what comes before and after is the agent's, for both alike. A whole step
// has its loss in the plan, which may compute it again or copy what it saves, and nothing of the caller's is in memory
// beside the plan: its peak is the predicted one to the byte. A begun step has the caller's loss and its gradient there,
// too, so a whole step is none of those with a backward behind it.
class PlannedStep {
 public:
  virtual ~PlannedStep() = default;
  // As Executor::Step.
  virtual absl::StatusOr<StepReport> Run(Batch batch) = 0;
  // Of a step whose loss and backward are the caller's: as PlannedModule::BeginStep.
  virtual absl::StatusOr<std::vector<at::Tensor>> Forward(Batch batch, bool measures,
                                                          OnStepEnd ended) = 0;
  // As Executor::MeasureInto; a step that cannot be measured leaves nothing there.
  virtual void MeasureInto(Later<MeasuredStep>* /*step*/) {}
};

// Not thread-safe. All errors are those of client/torch, and INVALID_ARGUMENT for a batch with another
// number of inputs than the model reads.
class TrainedModel {
 public:
  virtual ~TrainedModel() = default;

  // Whether each part of the model has an op_kind. Else FindUnlisted is to be called before all others: it finds what the model does
  // not list, in a copy of it, by running the batch forward (FindState). Errors: those of FindState.
  virtual bool lists_all() const { return true; }
  virtual absl::Status FindUnlisted(const Batch& /*batch*/) { return absl::OkStatus(); }

  virtual const ModelTensors& tensors() const = 0;

  // Whether it marks a part as must_keep, as those are to be that communicate: no rank may run them alone.
  virtual bool may_communicate() const { return false; }

  // The device that steps run on, null as in AgentOptions, as profiles name it at this moment.
  virtual Device DeviceOf(const ExecutionDevice* device) const { return DescribeDevice(device); }

  // What Measure would find of the structure, without running anything; an error where that cannot be
  // told. `meter` as that of ProfileOptions.
  virtual absl::StatusOr<Profile> FromShapes(const Batch& batch, const StepMeters& meters) const;

  virtual absl::StatusOr<Profile> Measure(const Batch& batch,
                                          const ProfileOptions& options) const = 0;

  // A step of plain training.
  virtual absl::StatusOr<StepReport> PlainStep(Batch batch, const StepMeters& meters) const = 0;

  // Its forward alone, in an ordinary graph where gradients are on: what PlannedStep::Forward returns.
  virtual absl::StatusOr<std::vector<at::Tensor>> PlainForward(Batch batch) const = 0;

  // Steps by `schedule`, which the evaluator must accept on `problem`, for batches no larger than this
  // one. INVALID_ARGUMENT also where `problem` is not that of the model.
  virtual absl::StatusOr<std::unique_ptr<PlannedStep>> Prepare(const Problem& problem,
                                                               const Schedule& schedule,
                                                               const Batch& batch,
                                                               ExecutionDevice* device) const = 0;
};

// The model must outlive what is made of it.
std::unique_ptr<TrainedModel> MakeTrainedModel(const ChainModel* model);
std::unique_ptr<TrainedModel> MakeTrainedModel(const GraphModel* model);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_TRAINED_MODEL_H_
