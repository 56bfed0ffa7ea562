#include "client/agent/trained_model.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/model/batch_shape.h"
#include "client/torch/profile/graph_profiler.h"
#include "client/torch/shapes/shape_profiler.h"

namespace stowage {
namespace {

absl::Status CheckOneInput(const Batch& batch) {
  if (batch.inputs.size() == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("there are ", batch.inputs.size(), " inputs, a chain reads one"));
}

class Steps : public PlannedStep {
 public:
  explicit Steps(std::unique_ptr<Executor> executor) : executor_(std::move(executor)) {}

  absl::StatusOr<StepReport> Run(Batch batch) override {
    return executor_->Step(std::move(batch.inputs), batch.target);
  }
  void MeasureInto(MeasuredStep* step) override { executor_->MeasureInto(step); }

 private:
  std::unique_ptr<Executor> executor_;
};

class TrainedChain : public TrainedModel {
 public:
  explicit TrainedChain(const ChainModel* model) : model_(model) {}

  const ModelTensors& tensors() const override { return *model_; }

  absl::StatusOr<Profile> FromShapes(const Batch& batch, const StepMeters& meters) const override {
    absl::Status status = CheckOneInput(batch);
    if (!status.ok()) return status;
    return ChainFromShapes(*model_, batch.inputs[0], batch.target, meters);
  }

  absl::StatusOr<Profile> Measure(const Batch& batch,
                                  const ProfileOptions& options) const override {
    absl::Status status = CheckOneInput(batch);
    if (!status.ok()) return status;
    return ProfileChain(*model_, batch.inputs[0], batch.target, options);
  }

  absl::StatusOr<StepReport> PlainStep(Batch batch, const StepMeters& meters) const override {
    absl::Status status = CheckOneInput(batch);
    if (!status.ok()) return status;
    return stowage::PlainStep(*model_, batch.inputs[0], batch.target, meters);
  }

  absl::StatusOr<std::unique_ptr<PlannedStep>> Prepare(const Problem& problem,
                                                       const Schedule& schedule, const Batch& batch,
                                                       ExecutionDevice* device) const override {
    if (!std::holds_alternative<Chain>(problem)) {
      return absl::InvalidArgumentError("the profile is of a graph, the model is a chain");
    }
    absl::StatusOr<std::unique_ptr<Executor>> executor =
        Executor::Create(model_, std::get<Chain>(problem), schedule, device,
                         BatchShape::Of(batch.inputs[0], batch.target));
    if (!executor.ok()) return executor.status();
    return std::make_unique<Steps>(*std::move(executor));
  }

 private:
  const ChainModel* const model_;
};

class TrainedGraph : public TrainedModel {
 public:
  explicit TrainedGraph(const GraphModel* model) : model_(model) {}

  const ModelTensors& tensors() const override { return *model_; }

  absl::StatusOr<Profile> FromShapes(const Batch& batch, const StepMeters& meters) const override {
    return GraphFromShapes(*model_, batch.inputs, batch.target, meters);
  }

  absl::StatusOr<Profile> Measure(const Batch& batch,
                                  const ProfileOptions& options) const override {
    return ProfileGraph(*model_, batch.inputs, batch.target, options);
  }

  absl::StatusOr<StepReport> PlainStep(Batch batch, const StepMeters& meters) const override {
    return PlainGraphStep(*model_, std::move(batch.inputs), batch.target, meters);
  }

  absl::StatusOr<std::unique_ptr<PlannedStep>> Prepare(const Problem& problem,
                                                       const Schedule& schedule, const Batch&,
                                                       ExecutionDevice* device) const override {
    if (!std::holds_alternative<Graph>(problem)) {
      return absl::InvalidArgumentError("the profile is of a chain, the model is a graph");
    }
    absl::StatusOr<std::unique_ptr<Executor>> executor =
        Executor::Create(model_, std::get<Graph>(problem), schedule, device);
    if (!executor.ok()) return executor.status();
    return std::make_unique<Steps>(*std::move(executor));
  }

 private:
  const GraphModel* const model_;
};

}  // namespace

absl::StatusOr<Profile> TrainedModel::FromShapes(const Batch&, const StepMeters&) const {
  return absl::UnimplementedError("the model has no shapes to look at");
}

std::unique_ptr<TrainedModel> MakeTrainedModel(const ChainModel* model) {
  return std::make_unique<TrainedChain>(model);
}

std::unique_ptr<TrainedModel> MakeTrainedModel(const GraphModel* model) {
  return std::make_unique<TrainedGraph>(model);
}

}  // namespace stowage
