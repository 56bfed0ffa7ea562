// Networks of any shape under autograd by schedules that move tensors to the host and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "client/torch/execute/plain_step.h"
#include "client/torch/execute/planned_module.h"
#include "solvers/schedule/instance.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/counting_device.h"
#include "tests/client/torch/error_of.h"
#include "tests/client/torch/network_case.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_graphs.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using testing::HasSubstr;

class PlannedGraphTransfers : public testing::Test, protected GraphTraining {
 protected:
  PlannedGraphTransfers(const std::string& name, const TrainingDevice& device)
      : GraphTraining(name, device), profile_(Profiled()), store_all_(StoreAllSchedule(graph())) {
    if (!device.missing.empty()) return;
    linked_ = std::make_unique<CountingDevice>(FastLink(/*full_duplex=*/true), device);
  }
  void SetUp() override { SKIP_IF_MISSING(device_); }

  const Graph& graph() const { return std::get<Graph>(profile_.problem); }

  Schedule MovingSchedule(int trips, std::mt19937* random) const {
    return WithTrips(graph(), *linked_->link(), store_all_, trips, random);
  }

  std::unique_ptr<PlannedModule> Make(const Schedule& schedule) {
    auto planned = PlannedModule::Create(&graph_.model, graph(), schedule, linked_.get());
    EXPECT_TRUE(planned.ok()) << planned.status();
    return std::move(planned).value();
  }

  void ExpectLike(const GraphOutcome& plain, double loss) {
    const GraphOutcome planned = After(loss);
    // A tensor of the type of the losses.
    EXPECT_EQ(static_cast<float>(planned.loss), static_cast<float>(plain.loss));
    EXPECT_EQ(planned.gradients, plain.gradients);
    EXPECT_EQ(planned.buffers, plain.buffers);
    EXPECT_TRUE(planned.random == plain.random);
  }

  void ExpectRight(PlannedModule* planned, const GraphOutcome& plain) {
    Rewind();
    const at::Tensor loss = planned->forward(Inputs(), graph_.target);
    loss.backward();
    ExpectLike(plain, loss.item<double>());
  }

  void ExpectNothingHeld(Bytes live) {
    EXPECT_EQ(device_.live(), live);
    EXPECT_EQ(linked_->host()->held(), Bytes(0));
  }

  std::unique_ptr<CountingDevice> linked_;  // null where the device is missing
  const Profile profile_;
  const Schedule store_all_;
};

int CopiesOf(const Schedule& schedule, Op start) {
  int copies = 0;
  for (const Instruction& i : schedule) copies += i.op == start ? 1 : 0;
  return copies;
}

class PlannedGraphTransferTest : public PlannedGraphTransfers,
                                 public testing::WithParamInterface<NetworkCase> {
 protected:
  PlannedGraphTransferTest()
      : PlannedGraphTransfers(std::get<0>(GetParam()),
                              TrainingDeviceNamed(std::get<1>(GetParam()))) {}
};

TEST_P(PlannedGraphTransferTest, StepsAreThePlainOnesAndDoAsTheEvaluatorSays) {
  const GraphOutcome plain = Plain();
  std::mt19937 random(12);
  const int schedules = std::get<0>(GetParam()) != "mixed" ? 6 : device_.exact ? 40 : 12;
  int trips = 0;
  for (int i = 0; i < schedules; ++i) {
    const Schedule schedule = MovingSchedule(2 + i % 12, &random);
    SCOPED_TRACE(Text(schedule));
    const auto planned = Make(schedule);
    const Bytes live = device_.live();
    const Bytes sums = TiedSums(graph_.model);
    linked_->Forget();
    meter_->ResetPeak();
    ExpectRight(planned.get(), plain);
    const Simulation& predicted = planned->prediction();
    const Bytes peak = meter_->peak() - live - sums;
    // The caller holds the loss, the engine its gradient.
    EXPECT_LE(peak, predicted.peak + Bytes(8));
    EXPECT_LE(linked_->host()->peak(), predicted.host_peak);
    EXPECT_LE(linked_->offloaded().bytes, predicted.offloaded);
    EXPECT_LE(linked_->prefetched().bytes, predicted.prefetched);
    // Elsewhere plans count whole blocks.
    if (device_.exact) {
      EXPECT_GE(peak + graph_.over_predicted, predicted.peak);
      EXPECT_GE(linked_->host()->peak(), predicted.host_peak);
      EXPECT_GE(linked_->offloaded().bytes, predicted.offloaded);
      EXPECT_GE(linked_->prefetched().bytes, predicted.prefetched);
    }
    EXPECT_EQ(linked_->offloaded().count, CopiesOf(schedule, Op::kOffloadStart));
    EXPECT_EQ(linked_->prefetched().count, CopiesOf(schedule, Op::kPrefetchStart));
    ExpectNothingHeld(live);
    trips += linked_->offloaded().count;
    if (HasFailure()) return;
  }
  EXPECT_GT(trips, 3 * schedules);
}

INSTANTIATE_TEST_SUITE_P(Graphs, PlannedGraphTransferTest,
                         testing::Combine(testing::Values("mixed", "decoder", "resnet18"),
                                          testing::Values("cpu")),
                         NameOfNetworkCase);
INSTANTIATE_TEST_SUITE_P(OnOtherDevices, PlannedGraphTransferTest,
                         testing::Combine(testing::Values("mixed", "decoder"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

class OnePlannedGraphTransfer : public PlannedGraphTransfers {
 protected:
  explicit OnePlannedGraphTransfer(const TrainingDevice& device)
      : PlannedGraphTransfers("mixed", device) {
    if (linked_ == nullptr) return;
    std::mt19937 random(5);
    schedule_ = MovingSchedule(10, &random);
    planned_ = Make(schedule_);
  }

  Schedule schedule_;
  std::unique_ptr<PlannedModule> planned_;
};

class OnePlannedGraphTransferTest : public OnePlannedGraphTransfer,
                                    public testing::WithParamInterface<std::string> {
 protected:
  OnePlannedGraphTransferTest() : OnePlannedGraphTransfer(TrainingDeviceNamed(GetParam())) {}
};

TEST_P(OnePlannedGraphTransferTest, StepsMayBeUnderWayAtOnceAndEndInAnyWay) {
  const GraphOutcome plain = [this] {
    Rewind();
    double sum = 0;
    for (int i = 0; i < 2; ++i) {
      const auto losses = PlainLosses(graph_.model, Inputs(), graph_.target);
      at::Tensor loss = losses[0];
      for (size_t k = 1; k < losses.size(); ++k) loss = loss + losses[k];
      loss.backward();
      sum += loss.item<double>();
    }
    return After(sum);
  }();
  const Bytes live = device_.live();
  Rewind();
  {
    const at::Tensor first = planned_->forward(Inputs(), graph_.target);
    const at::Tensor second = planned_->forward(Inputs(), graph_.target);
    const RandomState after_two = RandomState::Capture(device_.device);
    const BufferState buffers = BufferState::Capture(graph_.model.buffers());
    at::Tensor dropped = planned_->forward(Inputs(), graph_.target);
    dropped.reset();
    after_two.Restore();
    buffers.Restore();
    // In this order plain training, too, adds up the gradients.
    first.backward();
    second.backward();
    ExpectLike(plain, first.item<double>() + second.item<double>());
  }
  ExpectNothingHeld(live);
}

// Where the plan moves an input, it has a copy of its own, which goes with the first backward.
TEST_P(OnePlannedGraphTransferTest, GraphsMayBeKeptUnlessAnInputMoves) {
  const std::vector<at::Tensor> inputs = Inputs();
  const GraphOutcome plain = [&] {
    Rewind();
    const auto losses = PlainLosses(graph_.model, inputs, graph_.target);
    at::Tensor loss = losses[0];
    for (size_t k = 1; k < losses.size(); ++k) loss = loss + losses[k];
    loss.backward({}, /*retain_graph=*/true);
    loss.backward();
    return After(loss.item<double>());
  }();
  std::mt19937 random(8);
  int refused = 0;
  for (int i = 0; i < 12; ++i) {
    const Schedule schedule = MovingSchedule(3, &random);
    SCOPED_TRACE(Text(schedule));
    const bool moves = std::any_of(schedule.begin(), schedule.end(), [&](const Instruction& each) {
      return each.op == Op::kOffloadStart && each.tensor == TensorKind::kActivation &&
             graph_.model.is_input(each.stage - 1);
    });
    auto planned = Make(schedule);
    const Bytes live = device_.live();
    Rewind();
    {
      const at::Tensor loss = planned->forward(inputs, graph_.target);
      loss.backward({}, /*retain_graph=*/true);
      EXPECT_THAT(ErrorOf([&] { loss.backward(); }), HasSubstr(moves ? "nobody holds" : "nothing"));
      if (!moves) ExpectLike(plain, loss.item<double>());
    }
    planned.reset();  // autograd's queues have something left of what was refused
    ExpectNothingHeld(live);
    refused += moves ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 12);
}

TEST_P(OnePlannedGraphTransferTest, InputsThatTheCallerHoldsStayHis) {
  const GraphOutcome plain = Plain();
  // Both inputs are away between forward and backward.
  Schedule schedule;
  for (const Instruction& i : store_all_) {
    const bool is_first = i.op == Op::kBackward && CopiesOf(schedule, Op::kOffloadStart) == 0;
    for (const auto& [v, index] : graph_.model.inputs()) {
      if (!is_first) continue;
      schedule.push_back(OffloadStart(TensorKind::kActivation, v + 1));
      schedule.push_back(OffloadWait(TensorKind::kActivation, v + 1));
    }
    schedule.push_back(i);
    for (const auto& [v, index] : graph_.model.inputs()) {
      if (!is_first) continue;
      schedule.push_back(PrefetchStart(TensorKind::kActivation, v + 1));
      schedule.push_back(PrefetchWait(TensorKind::kActivation, v + 1));
    }
  }
  const auto planned = Make(schedule);
  const std::vector<at::Tensor> inputs = Inputs();
  Rewind();
  const at::Tensor sum = planned->forward(inputs, graph_.target);
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(inputs[i].equal(graph_.inputs[i]));
  sum.backward();
  ExpectLike(plain, sum.item<double>());
  for (size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(inputs[i].equal(graph_.inputs[i]));
  EXPECT_EQ(linked_->host()->held(), Bytes(0));
  EXPECT_EQ(linked_->offloaded().count, static_cast<int>(inputs.size()));
}

INSTANTIATE_TEST_SUITE_P(Devices, OnePlannedGraphTransferTest,
                         testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

// Of the CPU alone: copies of its link fail where the test has it.
class SimulatedGraphTransferTest : public OnePlannedGraphTransfer {
 protected:
  SimulatedGraphTransferTest() : OnePlannedGraphTransfer(TrainingDeviceNamed("cpu")) {}
};

TEST_F(SimulatedGraphTransferTest, AfterAnyCopyThatFailsTheNextStepIsRight) {
  const GraphOutcome plain = Plain();
  const Bytes live = device_.live();
  const int copies =
      CopiesOf(schedule_, Op::kOffloadStart) + CopiesOf(schedule_, Op::kPrefetchStart);
  int in_backward = 0;
  for (int copy = 0; copy < copies; ++copy) {
    Rewind();
    linked_->simulated()->FailCopyAfter(copy);
    at::Tensor loss;
    EXPECT_THAT(ErrorOf([&] {
                  loss = planned_->forward(Inputs(), graph_.target);
                  loss.backward();
                }),
                HasSubstr("the simulated copy failed"));
    in_backward += loss.defined() ? 1 : 0;
    loss.reset();
    ExpectNothingHeld(live);
  }
  EXPECT_GT(in_backward, 3);
  ExpectRight(planned_.get(), plain);
}

TEST_F(SimulatedGraphTransferTest, WithoutALinkTransfersAreRefused) {
  const absl::Status status = PlannedModule::Create(&graph_.model, graph(), schedule_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the device has no link"));
}

}  // namespace
}  // namespace stowage
