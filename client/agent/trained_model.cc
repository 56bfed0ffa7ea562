#include "client/agent/trained_model.h"

#include <functional>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/execute/planned_module.h"
#include "client/torch/model/batch_shape.h"
#include "client/torch/profile/found_state.h"
#include "client/torch/profile/graph_profiler.h"
#include "client/torch/shapes/shape_profiler.h"

namespace stowage {
namespace {

using MakeModule = std::function<absl::StatusOr<std::unique_ptr<PlannedModule>>()>;

// Whole steps, and forwards, whose plan is made where the first comes.
class Steps : public PlannedStep {
 public:
  Steps(std::unique_ptr<Executor> executor, MakeModule make_module)
      : executor_(std::move(executor)), make_module_(std::move(make_module)) {}

  absl::StatusOr<std::vector<at::Tensor>> Forward(Batch batch, bool measures,
                                                  OnStepEnd ended) override {
    if (module_ == nullptr) {
      absl::StatusOr<std::unique_ptr<PlannedModule>> module = make_module_();
      if (!module.ok()) return module.status();
      module_ = *std::move(module);
    }
    return module_->BeginStep(std::move(batch.inputs), batch.target, measures, std::move(ended));
  }

  absl::StatusOr<StepReport> Run(Batch batch) override {
    return executor_->Step(std::move(batch.inputs), batch.target);
  }
  void MeasureInto(Later<MeasuredStep>* step) override { executor_->MeasureInto(step); }

 private:
  std::unique_ptr<Executor> executor_;
  MakeModule make_module_;
  std::unique_ptr<PlannedModule> module_;
};

absl::StatusOr<std::vector<at::Tensor>> Caught(
    const std::function<std::vector<at::Tensor>()>& forward) {
  try {
    return forward();
  } catch (...) {
    return CurrentExceptionToStatus("plain forward", absl::StatusCode::kInternal);
  }
}

bool HasUnlisted(const ChainModel& model) {
  for (int l = 1; l <= model.length(); ++l) {
    if (model.stage(l).op_kind.empty()) return true;
  }
  return model.loss() && model.loss_op_kind().empty();
}

bool MarksKept(const ChainModel& model) {
  for (int l = 1; l <= model.length(); ++l) {
    if (model.stage(l).must_keep) return true;
  }
  return false;
}

bool MarksKept(const GraphModel& model) {
  for (int v = 0; v < model.size(); ++v) {
    if (model.node(v).must_keep) return true;
  }
  return false;
}

bool HasUnlisted(const GraphModel& model) {
  for (int v = 0; v < model.size(); ++v) {
    if (model.node(v).op_kind.empty()) return true;
  }
  return false;
}

// The caller's, or a copy in which what it does not list was found.
template <class Model>
class ListedModel {
 public:
  explicit ListedModel(const Model* model) : model_(model) {}

  bool lists_all() const { return !HasUnlisted(*model_); }

  absl::Status Find(const Batch& batch) {
    if (lists_all()) return absl::OkStatus();
    // But for the loss, which a batch without targets says nothing of.
    if (found_ != nullptr && batch.target.empty()) return absl::OkStatus();
    if (found_ != nullptr) return FindState(batch.inputs, batch.target, found_.get());
    auto found = std::make_unique<Model>(*model_);
    absl::Status status = FindState(batch.inputs, batch.target, found.get());
    if (!status.ok()) return status;
    found_ = std::move(found);
    model_ = found_.get();
    return absl::OkStatus();
  }

  const Model* get() const { return model_; }
  const Model& operator*() const { return *model_; }
  const Model* operator->() const { return model_; }

 private:
  const Model* model_;
  std::unique_ptr<Model> found_;
};

class TrainedChain : public TrainedModel {
 public:
  explicit TrainedChain(const ChainModel* model) : model_(model) {}

  bool lists_all() const override { return model_.lists_all(); }
  absl::Status FindUnlisted(const Batch& batch) override { return model_.Find(batch); }
  const ModelTensors& tensors() const override { return *model_; }
  bool may_communicate() const override { return MarksKept(*model_); }

  absl::StatusOr<Profile> FromShapes(const Batch& batch, const StepMeters& meters) const override {
    return ChainFromShapes(*model_, batch.inputs, batch.target, meters);
  }

  absl::StatusOr<Profile> Measure(const Batch& batch,
                                  const ProfileOptions& options) const override {
    return ProfileChain(*model_, batch.inputs, batch.target, options);
  }

  absl::StatusOr<StepReport> PlainStep(Batch batch, const StepMeters& meters) const override {
    return stowage::PlainStep(*model_, batch.inputs, batch.target, meters);
  }

  absl::StatusOr<std::vector<at::Tensor>> PlainForward(Batch batch) const override {
    absl::Status status = model_->CheckInputs(batch.inputs);
    if (!status.ok()) return status;
    return Caught([&] { return PlainForwardAll(*model_, std::move(batch.inputs)); });
  }

  absl::StatusOr<std::unique_ptr<PlannedStep>> Prepare(const Problem& problem,
                                                       const Schedule& schedule, const Batch& batch,
                                                       ExecutionDevice* device) const override {
    if (!std::holds_alternative<Chain>(problem)) {
      return absl::InvalidArgumentError("the profile is of a graph, the model is a chain");
    }
    const Chain& chain = std::get<Chain>(problem);
    const BatchShape shape = BatchShape::Of(batch.inputs, batch.target);
    absl::StatusOr<std::unique_ptr<Executor>> executor =
        Executor::Create(model_.get(), chain, schedule, device, shape);
    if (!executor.ok()) return executor.status();
    return std::make_unique<Steps>(
        *std::move(executor), [model = model_.get(), chain, schedule, device, shape] {
          return PlannedModule::Create(model, chain, schedule, device, shape);
        });
  }

 private:
  ListedModel<ChainModel> model_;
};

class TrainedGraph : public TrainedModel {
 public:
  explicit TrainedGraph(const GraphModel* model) : model_(model) {}

  bool lists_all() const override { return model_.lists_all(); }
  absl::Status FindUnlisted(const Batch& batch) override { return model_.Find(batch); }
  const ModelTensors& tensors() const override { return *model_; }
  bool may_communicate() const override { return MarksKept(*model_); }

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

  absl::StatusOr<std::vector<at::Tensor>> PlainForward(Batch batch) const override {
    if (batch.inputs.size() != model_->inputs().size()) {
      return absl::InvalidArgumentError("not as many inputs as the model reads");
    }
    return Caught([&] {
      std::vector<at::Tensor> outputs = PlainLosses(*model_, std::move(batch.inputs), batch.target);
      if (model_->outputs().empty()) outputs = {SumOf(std::move(outputs))};
      return outputs;
    });
  }

  absl::StatusOr<std::unique_ptr<PlannedStep>> Prepare(const Problem& problem,
                                                       const Schedule& schedule, const Batch&,
                                                       ExecutionDevice* device) const override {
    if (!std::holds_alternative<Graph>(problem)) {
      return absl::InvalidArgumentError("the profile is of a chain, the model is a graph");
    }
    const Graph& graph = std::get<Graph>(problem);
    absl::StatusOr<std::unique_ptr<Executor>> executor =
        Executor::Create(model_.get(), graph, schedule, device);
    if (!executor.ok()) return executor.status();
    return std::make_unique<Steps>(*std::move(executor),
                                   [model = model_.get(), graph, schedule, device] {
                                     return PlannedModule::Create(model, graph, schedule, device);
                                   });
  }

 private:
  ListedModel<GraphModel> model_;
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
