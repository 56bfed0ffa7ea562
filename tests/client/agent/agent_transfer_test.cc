// The agent on a device with a link to host memory, against a real stowaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/agent/agent.h"
#include "client/agent/device_link.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/model/transfer_model.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"
#include "tests/support/stowaged_process.h"

namespace stowage {
namespace {

using ::testing::HasSubstr;

int CopiesOf(const Schedule& schedule) {
  return static_cast<int>(std::count_if(schedule.begin(), schedule.end(), [](const Instruction& i) {
    return i.op == Op::kOffloadStart || i.op == Op::kPrefetchStart;
  }));
}

// With made-up times, the same each time, as slow as copies are worth while.
Chain Timed(const ChainModel& model, const at::Tensor& input, const at::Tensor& target,
            ExecutionDevice* device) {
  ChainSpec spec = ChainWithTimes(model, input, target, device).spec();
  for (Stage& stage : spec.stages) {
    stage.forward_time = Nanos(20 * stage.forward_time.value());
    stage.backward_time = Nanos(20 * stage.backward_time.value());
  }
  return Chain::Create(std::move(spec)).value();
}

// A chain whose times are made up.
class TimedChain : public TrainedModel {
 public:
  TimedChain(const ChainModel* model, ExecutionDevice* device)
      : model_(model), device_(device), measured_(MakeTrainedModel(model)) {}

  const ModelTensors& tensors() const override { return measured_->tensors(); }
  absl::StatusOr<Profile> Measure(const Batch& batch,
                                  const ProfileOptions& options) const override {
    absl::StatusOr<Profile> profile = measured_->Measure(batch, options);
    if (!profile.ok() || options.bytes_only) return profile;
    profile->problem = Timed(*model_, batch.inputs[0], batch.target.front(), device_);
    return profile;
  }
  absl::StatusOr<StepReport> PlainStep(Batch batch, const StepMeters& meters) const override {
    return measured_->PlainStep(std::move(batch), meters);
  }
  absl::StatusOr<std::vector<at::Tensor>> PlainForward(Batch batch) const override {
    return measured_->PlainForward(std::move(batch));
  }
  absl::StatusOr<std::unique_ptr<PlannedStep>> Prepare(const Problem& problem,
                                                       const Schedule& schedule, const Batch& batch,
                                                       ExecutionDevice* device) const override {
    return measured_->Prepare(problem, schedule, batch, device);
  }

 private:
  const ChainModel* const model_;
  ExecutionDevice* const device_;
  const std::unique_ptr<TrainedModel> measured_;
};

class AgentTransfers : public ::testing::Test {
 protected:
  explicit AgentTransfers(const TrainingDevice& device)
      : device_(device),
        link_(FastLink(/*full_duplex=*/true)),
        network_(MakeTestNetwork("norm_mlp", device)),
        start_(network_.model, device.device) {
    options_.server.address = server_.address();
    options_.drift.replans = 0;
    options_.report_after = 2;
    options_.plan.solver = "offload_greedy";
    options_.on_event = [this](const AgentEvent& event) { events_.push_back(event); };
  }
  void SetUp() override { SKIP_IF_MISSING(device_); }

  std::unique_ptr<TrainedModel> Model() const {
    return std::make_unique<TimedChain>(&network_.model, device_.execution);
  }

  // A job of its own on this link.
  std::unique_ptr<Agent> Start(const TransferModel& link) {
    linked_.push_back(MakeLinkedDevice(device_, link));
    options_.device = linked_.back().get();
    return std::make_unique<Agent>(Model(), nullptr, options_);
  }

  // Half way from the least that copies make possible to what storing all takes.
  absl::StatusOr<AdoptedPlan> PlanWith(Agent* agent) {
    PlanOptions options;
    options.solver = "offload_greedy";
    const Chain chain = Timed(network_.model, network_.input, network_.target, device_.execution);
    const Bytes least = ResolveBudget(Instance(chain, link_), LeastBudget{}, options).value();
    const Bytes all = Evaluator(chain).Run(StoreAllSchedule(chain)).value().peak;
    return agent->Plan(network_.input, network_.target, Bytes((least + all).value() / 2));
  }

  const TrainingDevice& device_;
  StowagedProcess server_;
  TransferModel link_;
  std::vector<std::unique_ptr<ExecutionDevice>> linked_;
  TestNetwork network_;
  AgentOptions options_;
  std::vector<AgentEvent> events_;
  Rewinder start_;
};

class AgentTransferTest : public AgentTransfers, public ::testing::WithParamInterface<std::string> {
 protected:
  AgentTransferTest() : AgentTransfers(TrainingDeviceNamed(GetParam())) {}
};

TEST_P(AgentTransferTest, PlansThatCopyAreSolvedCachedAndExecuted) {
  start_.Rewind();
  const auto plain =
      MakeTrainedModel(&network_.model)->PlainStep({{network_.input}, network_.target}, nullptr);
  ASSERT_TRUE(plain.ok()) << plain.status();
  const Outcome expected = Outcome::Of(network_.model, plain->loss);
  std::vector<Digest> digests;
  for (const PlanSource source : {PlanSource::kSolved, PlanSource::kCache}) {
    const auto agent = Start(link_);
    const auto adopted = PlanWith(agent.get());
    ASSERT_TRUE(adopted.ok()) << adopted.status();
    EXPECT_EQ(adopted->source, source);
    ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
    digests.push_back(adopted->digest);
    const Plan& plan = adopted->plan;
    EXPECT_GT(CopiesOf(plan.schedule), 0);
    const auto known = TransfersOf(agent->profile()->device);
    ASSERT_TRUE(known.has_value());
    EXPECT_EQ(known->to_host.bytes_per_second, link_.to_host.bytes_per_second);
    events_.clear();
    for (int i = 0; i < 2; ++i) {
      start_.Rewind();
      const auto step = agent->Step(network_.input, network_.target);
      ASSERT_TRUE(step.ok()) << step.status();
      ExpectEqual(expected, Outcome::Of(network_.model, step->loss));
      EXPECT_LE(step->peak, plan.budget);
      EXPECT_LE(step->host_peak, plan.prediction.host_peak);
      // Elsewhere plans count whole blocks.
      if (!device_.exact) continue;
      EXPECT_EQ(step->peak, plan.prediction.peak);
      EXPECT_EQ(step->offloaded, plan.prediction.offloaded);
      EXPECT_EQ(step->prefetched, plan.prediction.prefetched);
      EXPECT_EQ(step->host_peak, plan.prediction.host_peak);
    }
    ASSERT_EQ(agent->events().of<ReportSentEvent>(), 1);
    const auto& report = std::get<ReportSentEvent>(events_.back());
    EXPECT_EQ(report.copies, CopiesOf(plan.schedule));
    EXPECT_LE(report.offloaded, plan.prediction.offloaded);
    EXPECT_LE(report.prefetched, plan.prediction.prefetched);
    if (device_.exact) {
      EXPECT_EQ(report.offloaded, plan.prediction.offloaded);
      EXPECT_EQ(report.prefetched, plan.prediction.prefetched);
    }
    EXPECT_THAT(ToString(events_.back()), HasSubstr("to host memory and"));
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST_P(AgentTransferTest, ACachedPlanIsJudgedByTheOwnLink) {
  const auto first = PlanWith(Start(link_).get());
  ASSERT_TRUE(first.ok()) << first.status();
  TransferModel faster = link_;  // of the same class
  faster.to_host.bytes_per_second += faster.to_host.bytes_per_second / 2;
  ASSERT_EQ(BandwidthClassOf(faster), BandwidthClassOf(link_));
  const auto agent = Start(faster);
  // Without times of its own it would predict the first job's.
  ASSERT_TRUE(agent->Profile(network_.input, network_.target).ok());
  const auto second = PlanWith(agent.get());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->source, PlanSource::kCache);
  EXPECT_EQ(second->digest, first->digest);
  const auto judged = Evaluator(Instance(std::get<Chain>(agent->profile()->problem), faster))
                          .Run(second->plan.schedule);
  ASSERT_TRUE(judged.ok()) << judged.status();
  EXPECT_EQ(second->plan.prediction.makespan, judged->makespan);
}

TEST_P(AgentTransferTest, PlansKeepToTheHostMemoryThereIs) {
  const auto first = PlanWith(Start(link_).get());
  ASSERT_TRUE(first.ok()) << first.status();
  const Bytes needed = first->plan.prediction.host_peak;
  ASSERT_GT(needed, Bytes(0));
  TransferModel less = link_;
  less.host_memory = needed - Bytes(1);
  const auto agent = Start(less);
  const auto second = PlanWith(agent.get());
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(second->digest, first->digest);
  if (second->plan.status != PlanStatus::kFound) return;
  EXPECT_LT(second->plan.prediction.host_peak, needed);
  EXPECT_TRUE(agent->Step(network_.input, network_.target).ok());
}

// Somebody else has taken of it what the plan counts on.
TEST_P(AgentTransferTest, HostMemoryThatRunsOutLeadsToAPlanThatTakesLess) {
  options_.plan.solver = "";
  options_.out_of_memory.retry_step = true;
  const auto agent = Start(link_);
  const auto first = agent->Plan(network_.input, network_.target, ShareOfStoreAll{0.8});
  ASSERT_TRUE(first.ok()) << first.status();
  const Bytes needed = first->plan.prediction.host_peak;
  ASSERT_GT(needed, Bytes(0));
  const Bytes taken = link_.host_memory - needed + Bytes(1);
  const HostPool::Block others =
      linked_.back()->host()->Allocate(static_cast<size_t>(taken.value()));
  const auto step = agent->Step(network_.input, network_.target);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_GE(agent->events().of<OutOfMemoryEvent>(), 1);
  EXPECT_LT(step->host_peak, needed);
  EXPECT_LE(step->peak, first->plan.budget);
}

// The plans of other shapes count on it, too.
TEST_P(AgentTransferTest, HostMemoryThatRunsOutIsFoundOutOnceForAllShapes) {
  options_.plan.solver = "";
  const auto agent = Start(link_);
  const auto large = agent->Plan(network_.input, network_.target, ShareOfStoreAll{0.8});
  ASSERT_TRUE(large.ok()) << large.status();
  const Batch fewer{{network_.input.narrow(0, 0, 2).contiguous()},
                    network_.target.narrow(0, 0, 2).contiguous()};
  const auto small = agent->Plan(fewer, ShareOfStoreAll{0.8});
  ASSERT_TRUE(small.ok()) << small.status();
  const Bytes needed = small->plan.prediction.host_peak;
  ASSERT_GT(needed, Bytes(0));
  ASSERT_GE(large->plan.prediction.host_peak, needed);
  const HostPool::Block others = linked_.back()->host()->Allocate(
      static_cast<size_t>((link_.host_memory - needed).value() + 1));
  EXPECT_TRUE(absl::IsResourceExhausted(agent->Step(fewer).status()));
  const auto step = agent->Step(network_.input, network_.target);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_LT(step->host_peak, needed);
  EXPECT_LE(step->peak, large->plan.budget);
  EXPECT_TRUE(agent->Step(fewer).ok());
  EXPECT_EQ(agent->events().of<OutOfMemoryEvent>(), 1);
}

class AgentWithoutLinkTest : public AgentTransfers {
 protected:
  AgentWithoutLinkTest() : AgentTransfers(TrainingDeviceNamed("cpu")) {}
};

TEST_F(AgentWithoutLinkTest, WithoutALinkPlansRecompute) {
  ASSERT_TRUE(PlanWith(Start(link_).get()).ok());
  options_.device = nullptr;
  options_.plan.solver = "";
  Agent agent(Model(), nullptr, options_);
  const auto adopted = agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.8});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
  EXPECT_EQ(CopiesOf(adopted->plan.schedule), 0);
  EXPECT_FALSE(TransfersOf(agent.profile()->device).has_value());
  const auto step = agent.Step(network_.input, network_.target);
  ASSERT_TRUE(step.ok()) << step.status();
  EXPECT_GT(step->recomputed_forwards, 0);
}

// An answer, not a step that fails.
TEST_F(AgentWithoutLinkTest, AnOffloadSolverWithoutALinkFindsNoPlan) {
  options_.device = nullptr;
  Agent agent(Model(), nullptr, options_);
  const auto adopted = agent.Plan(network_.input, network_.target, ShareOfStoreAll{0.8});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->plan.status, PlanStatus::kProvenInfeasible);
  EXPECT_THAT(adopted->plan.explanation, HasSubstr("without a link to host memory"));
  EXPECT_TRUE(absl::IsFailedPrecondition(agent.Step(network_.input, network_.target).status()));
}

TEST_P(AgentTransferTest, CopiesMayBeForbiddenOnALink) {
  options_.plan = {};
  options_.plan.recompute_only = true;
  const auto agent = Start(link_);
  const auto adopted = agent->Plan(network_.input, network_.target, ShareOfStoreAll{0.8});
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  ASSERT_EQ(adopted->plan.status, PlanStatus::kFound);
  EXPECT_EQ(CopiesOf(adopted->plan.schedule), 0);
}

TEST_P(AgentTransferTest, AProfileThatWasKeptGetsTheLinkOfThisDevice) {
  const auto first = Start(link_);
  ASSERT_TRUE(PlanWith(first.get()).ok());
  Profile kept = *first->profile();
  kept.device.host_memory = kept.device.host_memory + Bytes(1);
  const auto second = Start(link_);
  ASSERT_TRUE(second->UseProfile({{network_.input}, network_.target}, kept).ok());
  EXPECT_EQ(second->profile()->device.host_memory, link_.host_memory);
  const auto adopted = PlanWith(second.get());
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->source, PlanSource::kCache);
  EXPECT_GT(CopiesOf(adopted->plan.schedule), 0);
}

INSTANTIATE_TEST_SUITE_P(On, AgentTransferTest, ::testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

// What is written for one device is not left for another.
TEST(DeviceLink, IsStatedAsItIs) {
  TransferModel link = FastLink(/*full_duplex=*/false);
  link.to_device = {int64_t{3} << 30, Nanos(7)};
  const auto device = SimulatedDevice::Create(link).value();
  Device profiled;
  WriteLink(device.get(), kAllHostMemory, &profiled);
  EXPECT_TRUE(ValidateDevice(profiled).ok());
  const auto stated = TransfersOf(profiled);
  ASSERT_TRUE(stated.has_value());
  EXPECT_EQ(stated->to_host.bytes_per_second, link.to_host.bytes_per_second);
  EXPECT_EQ(stated->to_host.latency, link.to_host.latency);
  EXPECT_EQ(stated->to_device.bytes_per_second, link.to_device.bytes_per_second);
  EXPECT_EQ(stated->to_device.latency, link.to_device.latency);
  EXPECT_EQ(stated->full_duplex, link.full_duplex);
  EXPECT_EQ(stated->host_memory, link.host_memory);
  WriteLink(nullptr, kAllHostMemory, &profiled);
  EXPECT_FALSE(TransfersOf(profiled).has_value());
  EXPECT_EQ(profiled.duplex, Duplex::kUnspecified);
}

}  // namespace
}  // namespace stowage
