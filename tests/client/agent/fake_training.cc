#include "tests/client/agent/fake_training.h"

#include <gmock/gmock.h>
#include <torch/torch.h>

#include <utility>
#include <variant>

#include "client/rpc/mock_plan_connection.h"
#include "client/torch/execute/step_failure.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"

namespace stowage {
namespace {

Device FakeDevice() {
  Device device;
  device.model = "fake";
  return device;
}

class FakeStep : public PlannedStep {
 public:
  FakeStep(FakeWorld* world, at::Tensor parameter, Simulation predicted)
      : world_(world), parameter_(std::move(parameter)), predicted_(predicted) {}

  // Ends as the whole step would, where the backward does.
  absl::StatusOr<std::vector<at::Tensor>> Forward(Batch batch, bool, OnStepEnd ended) override {
    auto outputs = ForwardOfPlainStep(
        &world_->meter, Bytes(0),
        [this]() -> absl::StatusOr<std::vector<at::Tensor>> {
          return std::vector<at::Tensor>{parameter_ * 2};
        },
        [this, batch, ended](StepEnd end) {
          if (end.report.ok()) end.report = Run(batch);
          ended(std::move(end));
        });
    return outputs;
  }

  absl::StatusOr<StepReport> Run(Batch batch) override {
    if (world_->immovable && predicted_.offloaded > Bytes(0)) {
      return Failed(StepFault::kImmovable, absl::InvalidArgumentError("it holds what cannot move"));
    }
    if (predicted_.host_peak > world_->host_room) {
      return Failed(StepFault::kHostMemory, absl::ResourceExhaustedError("the host is full"));
    }
    if (predicted_.peak > world_->room) {
      // The batch was there before the step.
      world_->meter.highest = world_->room - InputBytes(batch);
      absl::Status full = absl::ResourceExhaustedError("the device is full");
      if (!world_->failed_at) return full;
      return Failed(StepFault::kDeviceMemory, std::move(full), *world_->failed_at);
    }
    ++world_->planned_steps;
    StepReport report;
    report.wall_time = Nanos(
        static_cast<int64_t>(static_cast<double>(predicted_.makespan.value()) * world_->slower));
    report.peak =
        Bytes(static_cast<int64_t>(static_cast<double>(predicted_.peak.value()) * world_->larger));
    report.peak_reserved = report.peak;
    report.recomputed_forwards = predicted_.recomputed_forwards;
    return report;
  }

 private:
  static absl::Status Failed(StepFault fault, absl::Status status, size_t instruction = 0) {
    StepFailure failure;
    failure.fault = fault;
    failure.instruction = instruction;
    SetStepFailure(failure, &status);
    return status;
  }

  FakeWorld* const world_;
  const at::Tensor parameter_;
  const Simulation predicted_;
};

// A share is one under the costs that the plan was made for.
Bytes BytesOf(const Budget& budget, const Plan& plan) {
  if (const auto* share = std::get_if<ShareOfStoreAll>(&budget)) {
    return ShareOf(*share, plan.bounds.store_all_peak);
  }
  return std::get<Bytes>(budget);
}

}  // namespace

Device FakeModel::DeviceOf(const ExecutionDevice*) const { return FakeDevice(); }

FakeTensors::FakeTensors() {
  at::Tensor parameter = torch::ones({4});
  parameter.requires_grad_();
  AddTensors({parameter}, {});
  EnsureGradients();
}

Profile FakeProfile(const Batch& batch, CostSource costs) {
  const int64_t n = batch.inputs[0].size(0);
  const bool times = costs == CostSource::kMeasured;
  ChainSpec spec;
  spec.name = "fake";
  spec.input = InputBytes(batch);
  for (int l = 0; l < 8; ++l) {
    Stage stage;
    stage.op_kind = "fake";
    stage.output = stage.output_gradient = Bytes(100 * n);
    stage.saved = Bytes(300 * n);
    if (times) {
      stage.forward_time = Nanos(1000000);
      stage.backward_time = Nanos(2000000);
    }
    spec.stages.push_back(stage);
  }
  return {"fake", FakeDevice(), Chain::Create(std::move(spec)).value(), costs};
}

absl::StatusOr<Profile> FakeModel::FromShapes(const Batch& batch, const StepMeters& meters) const {
  if (!world_->tells_shapes) return TrainedModel::FromShapes(batch, meters);
  ++world_->told_shapes;
  Profile told = FakeProfile(batch, CostSource::kBytesOnly);
  if (!world_->shapes_are_off) return told;
  ChainSpec spec = std::get<Chain>(told.problem).spec();
  spec.stages[0].saved += Bytes(1);
  told.problem = Chain::Create(std::move(spec)).value();
  return told;
}

absl::StatusOr<Profile> FakeModel::Measure(const Batch& batch,
                                           const ProfileOptions& options) const {
  if (world_->measure_fails) return absl::InternalError("the profiler fails");
  world_->measured.push_back(options.bytes_only ? CostSource::kBytesOnly : CostSource::kMeasured);
  Profile profile = FakeProfile(batch, world_->measured.back());
  if (!world_->costs || options.bytes_only) return profile;
  ChainSpec spec = std::get<Chain>(profile.problem).spec();
  world_->costs(&spec);
  profile.problem = Chain::Create(std::move(spec)).value();
  return profile;
}

absl::StatusOr<StepReport> FakeModel::PlainStep(Batch batch, const StepMeters& meters) const {
  ++world_->plain_steps;
  world_->plain_meter = meters.memory;
  const Simulation plain =
      Instance(FakeProfile(batch, CostSource::kMeasured).problem).store_all().value();
  StepReport report;
  report.wall_time = plain.makespan;
  report.peak = plain.peak;
  return report;
}

absl::StatusOr<std::vector<at::Tensor>> FakeModel::PlainForward(Batch) const {
  ++world_->plain_steps;
  return std::vector<at::Tensor>{tensors_.parameters()[0] * 2};
}

absl::StatusOr<std::unique_ptr<PlannedStep>> FakeModel::Prepare(const Problem& problem,
                                                                const Schedule& schedule,
                                                                const Batch&,
                                                                ExecutionDevice* device) const {
  const TransferModel* const link = device == nullptr ? nullptr : device->link();
  absl::StatusOr<Simulation> predicted = link == nullptr
                                             ? Evaluator(problem).Run(schedule)
                                             : Evaluator(Instance(problem, *link)).Run(schedule);
  if (!predicted.ok()) return predicted.status();
  // Of the costs as they are, whatever was measured.
  if (predicted->makespan == Nanos(0)) predicted->makespan = Nanos(24000000);
  return std::make_unique<FakeStep>(world_, tensors_.parameters()[0], *predicted);
}

Batch FakeBatch(int64_t n) { return {{torch::zeros({n, 2})}, torch::zeros({n})}; }

std::unique_ptr<PlanConnection> FakeService::Connect() {
  using ::testing::_;
  auto connection = std::make_unique<::testing::NiceMock<MockPlanConnection>>();
  ON_CALL(*connection, GetPlan(_, _, _))
      .WillByDefault([this](const std::vector<PlanKey>& keys, const Budget& budget,
                            const CallOptions&) -> absl::StatusOr<PlanReply> {
        const std::lock_guard<std::mutex> one(answering);
        ++looked_up;
        for (const PlanKey& key : keys) {
          for (const Plan& plan : kept[key]) {
            if (plan.prediction.peak <= BytesOf(budget, plan)) {
              return PlanReply{plan, key, PlanSource::kCache, profile_wanted};
            }
          }
        }
        return absl::NotFoundError("none");
      });
  ON_CALL(*connection, ComputePlan(_, _, _, _))
      .WillByDefault([this](const Profile& profile, const Budget& budget, const KeyOptions& key,
                            const CallOptions&) -> absl::StatusOr<PlanReply> {
        const std::lock_guard<std::mutex> one(answering);
        ++computed;
        profile_wanted = false;
        PlanOptions options;
        options.recompute_only = key.recompute_only;
        absl::StatusOr<Plan> plan = MakePlan(profile, budget, options);
        if (!plan.ok()) return plan.status();
        const PlanKey made = MakePlanKey(profile, key);
        if (plan->status == PlanStatus::kFound) kept[made].push_back(*plan);
        return PlanReply{*std::move(plan), made, PlanSource::kSolved};
      });
  ON_CALL(*connection, ReportExecution(_, _))
      .WillByDefault([this](const ExecutionMeasurement& measured,
                            const CallOptions&) -> absl::StatusOr<ExecutionVerdict> {
        const std::lock_guard<std::mutex> one(answering);
        if (!report_status.ok()) return report_status;
        reports.push_back(measured);
        return ExecutionVerdict::kAccepted;
      });
  return connection;
}

}  // namespace stowage
