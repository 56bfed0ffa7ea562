// Chains under autograd by schedules that move tensors to the host and back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/torch/execute/planned_module.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/simulation.h"
#include "tests/client/torch/counting_device.h"
#include "tests/client/torch/execute/planned_module_fixture.h"
#include "tests/client/torch/network_case.h"
#include "tests/client/torch/random_schedule.h"

namespace stowage {
namespace {

using testing::HasSubstr;

constexpr TensorKind kActivation = TensorKind::kActivation;
constexpr TensorKind kSaved = TensorKind::kSaved;

class PlannedTransfers : public PlannedTraining {
 protected:
  explicit PlannedTransfers(const std::string& name,
                            const TrainingDevice& device = TrainingDeviceNamed("cpu"))
      : PlannedTraining(name, device), device_(NewDevice(/*full_duplex=*/false)) {}

  // Null where there is none.
  std::unique_ptr<CountingDevice> NewDevice(bool full_duplex) const {
    if (!training_device_.missing.empty()) return nullptr;
    return std::make_unique<CountingDevice>(FastLink(full_duplex), training_device_);
  }

  Schedule MovingSchedule(int trips, std::mt19937* random) {
    const Schedule recomputing =
        Disturb(chain_, RandomPersistentSchedule(chain_, random), 2, random);
    return WithTrips(chain_, *device_->link(), recomputing, trips, random);
  }

  std::unique_ptr<PlannedModule> Make(const Schedule& schedule) {
    auto planned = PlannedModule::Create(&model_, chain_, schedule, device_.get());
    EXPECT_TRUE(planned.ok()) << planned.status() << "\n" << Text(schedule);
    return std::move(planned).value();
  }

  // Of an input that nobody else holds.
  static Forward Giving(PlannedModule* planned) {
    return [planned](const at::Tensor& input) { return planned->forward(input.clone()); };
  }

  // Steps that start with this schedule's copies of everything but the loss, which is the caller's.
  int CopiesOf(const Schedule& schedule, Op start) const {
    int copies = 0;
    for (const Instruction& i : schedule) {
      copies += i.op == start && i.stage <= chain_.length() ? 1 : 0;
    }
    return copies;
  }

  void ExpectNothingHeld(Bytes live) {
    EXPECT_EQ(training_device_.live(), live);
    EXPECT_EQ(device_->host()->held(), Bytes(0));
  }

  std::unique_ptr<CountingDevice> device_;
};

class PlannedTransferTest : public PlannedTransfers,
                            public testing::WithParamInterface<NetworkCase> {
 protected:
  PlannedTransferTest()
      : PlannedTransfers(std::get<0>(GetParam()), TrainingDeviceNamed(std::get<1>(GetParam()))) {}

  bool exact() const { return training_device_.exact; }
};

TEST_P(PlannedTransferTest, StepsAreThePlainOnesAndDoAsTheEvaluatorSays) {
  const Outcome plain = AfterStep(plain_);
  const int schedules = std::get<0>(GetParam()) == "resnet18" || !exact() ? 8 : 40;
  std::mt19937 random(21);
  int trips = 0;
  for (int i = 0; i < schedules; ++i) {
    device_ = NewDevice(/*full_duplex=*/i % 2 == 1);
    const Schedule schedule = MovingSchedule(1 + i % 9, &random);
    SCOPED_TRACE(Text(schedule));
    const auto planned = Make(schedule);
    start_.Rewind();
    const Bytes live = meter_->current();
    const Bytes base = live + TiedSums(model_);
    meter_->ResetPeak();
    ExpectEqual(plain, AfterStep(Giving(planned.get())));
    const Simulation& predicted = planned->prediction();
    // The caller holds the loss, the engine its gradient, all the time.
    EXPECT_LE(meter_->peak() - base, predicted.peak + Bytes(8));
    EXPECT_LE(device_->host()->peak(), predicted.host_peak);
    EXPECT_LE(device_->offloaded().bytes, predicted.offloaded);
    EXPECT_LE(device_->prefetched().bytes, predicted.prefetched);
    // Elsewhere plans count whole blocks.
    if (exact()) {
      EXPECT_GE(meter_->peak() - base, predicted.peak);
      EXPECT_GE(device_->host()->peak(), predicted.host_peak);
      EXPECT_GE(device_->offloaded().bytes, predicted.offloaded);
      EXPECT_GE(device_->prefetched().bytes, predicted.prefetched);
    }
    EXPECT_EQ(device_->offloaded().count, CopiesOf(schedule, Op::kOffloadStart));
    EXPECT_EQ(device_->prefetched().count, CopiesOf(schedule, Op::kPrefetchStart));
    ExpectNothingHeld(live);
    trips += device_->offloaded().count;
    if (HasFailure()) return;
  }
  EXPECT_GT(trips, 3 * schedules);
}

TEST_P(PlannedTransferTest, ForwardsMayComeBeforeBackwardsAndGraphsMayBeKept) {
  const auto train = [this](const Forward& forward) {
    const at::Tensor first = LossOf(forward);
    const at::Tensor second = LossOf(forward);
    const at::Tensor third = LossOf(forward);
    second.backward({}, /*retain_graph=*/true);
    first.backward();
    (second * 2).backward();
    return first.item<double>() + second.item<double>() + third.item<double>();
  };
  const Outcome plain = After([&] { return train(plain_); });
  std::mt19937 random(8);
  for (int i = 0; i < (exact() ? 12 : 4); ++i) {
    const Schedule schedule = MovingSchedule(6, &random);
    SCOPED_TRACE(Text(schedule));
    const auto planned = Make(schedule);
    const Bytes live = meter_->current();
    for (const Forward& forward : {Giving(planned.get()), ForwardOf(planned.get())}) {
      ExpectEqual(plain, After([&] { return train(forward); }));
      ExpectNothingHeld(live);
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, PlannedTransferTest,
                         testing::Combine(testing::ValuesIn(TestNetworkNames()),
                                          testing::Values("cpu")),
                         NameOfNetworkCase);
INSTANTIATE_TEST_SUITE_P(OnOtherDevices, PlannedTransferTest,
                         testing::Combine(testing::Values("norm_cnn", "mlp", "tied", "transformer"),
                                          testing::Values("test", "cuda")),
                         NameOfNetworkCase);

class OnePlannedTransfer : public PlannedTransfers {
 protected:
  explicit OnePlannedTransfer(const TrainingDevice& device) : PlannedTransfers("norm_cnn", device) {
    if (device_ == nullptr) return;
    // Whose copies are spread over forward and backward.
    std::mt19937 random(4);
    int before_loss = 0;
    int after_loss = 0;
    while (before_loss < 3 || after_loss < 3) {
      schedule_ = MovingSchedule(10, &random);
      const auto loss =
          std::find(schedule_.begin(), schedule_.end(), Backward(chain_.length() + 1));
      before_loss = CopiesOf({schedule_.begin(), loss}, Op::kOffloadStart);
      after_loss = CopiesOf({loss, schedule_.end()}, Op::kOffloadStart);
    }
    planned_ = Make(schedule_);
  }

  Schedule schedule_;
  std::unique_ptr<PlannedModule> planned_;
};

// Of copies that take as long, or fail, as the test has it.
class SimulatedTransferTest : public OnePlannedTransfer {
 protected:
  SimulatedTransferTest() : OnePlannedTransfer(TrainingDeviceNamed("cpu")) {}
};

TEST_F(SimulatedTransferTest, GraphsThatAreDroppedHoldNothing) {
  planned_.reset();
  const Bytes live = meter_->current();
  // No copy has ended when the graphs go.
  TransferModel slow = FastLink(/*full_duplex=*/true);
  slow.to_host.latency = Nanos(int64_t{60} * 1000 * 1000 * 1000);
  device_ = std::make_unique<CountingDevice>(slow);
  Schedule schedule = StoreAllSchedule(chain_);
  const auto middle = schedule.begin() + chain_.length();
  schedule.insert(middle + 2, {OffloadWait(kActivation, 0), PrefetchStart(kActivation, 0),
                               PrefetchWait(kActivation, 0)});
  schedule.insert(schedule.begin() + chain_.length(), OffloadStart(kActivation, 0));
  const auto planned = Make(schedule);
  std::vector<at::Tensor> outputs;
  for (int i = 0; i < 3; ++i) outputs.push_back(planned->forward(network_.input.clone()));
  EXPECT_EQ(device_->offloaded().count, 3);
  EXPECT_EQ(device_->simulated()->running(), 3);
  EXPECT_EQ(device_->host()->held(), Bytes(3 * static_cast<int64_t>(network_.input.nbytes())));
  outputs.clear();
  EXPECT_EQ(device_->host()->held(), Bytes(0));
  EXPECT_EQ(meter_->current(), live);
}

TEST_F(SimulatedTransferTest, AfterAnyCopyThatFailsTheNextStepIsRight) {
  const Outcome plain = AfterStep(plain_);
  const Bytes live = meter_->current();
  const int copies =
      CopiesOf(schedule_, Op::kOffloadStart) + CopiesOf(schedule_, Op::kPrefetchStart);
  int in_backward = 0;
  for (int copy = 0; copy < copies; ++copy) {
    start_.Rewind();
    // With another step on its way.
    const at::Tensor pending = LossOf(Giving(planned_.get()));
    const Bytes with_pending = meter_->current();
    const Bytes host = device_->host()->held();
    const at::Tensor input = network_.input.clone();
    const Bytes with_input = meter_->current();
    device_->simulated()->FailCopyAfter(copy);
    at::Tensor loss;
    EXPECT_THAT(ErrorOf([&] {
                  loss = LossOf(ForwardOf(planned_.get()));
                  loss.backward();
                }),
                HasSubstr("the simulated copy failed"));
    device_->simulated()->FailCopyAfter(-1);
    in_backward += loss.defined() ? 1 : 0;
    loss.reset();
    EXPECT_EQ(meter_->current(), with_input);
    EXPECT_GT(with_input, with_pending);
    EXPECT_EQ(device_->host()->held(), host);
    pending.backward();
  }
  EXPECT_GT(in_backward, 3);
  EXPECT_LT(in_backward, copies);
  ExpectNothingHeld(live);
  ExpectEqual(plain, AfterStep(Giving(planned_.get())));
}

class OnePlannedTransferTest : public OnePlannedTransfer,
                               public testing::WithParamInterface<std::string> {
 protected:
  OnePlannedTransferTest() : OnePlannedTransfer(TrainingDeviceNamed(GetParam())) {}
};

TEST_P(OnePlannedTransferTest, OutOfMemoryAtAnyPointLeavesNothingBehind) {
  if (!training_device_.limits_memory()) GTEST_SKIP() << "its memory has no limit to the byte";
  const Outcome plain = AfterStep(plain_);
  const Bytes live = meter_->current();
  const int64_t peak = planned_->prediction().peak.value();
  int in_forward = 0;
  int in_backward = 0;
  for (int64_t extra = 0; extra < peak; extra += peak / 40) {
    start_.Rewind();
    training_device_.LimitMemory(Bytes(extra));
    at::Tensor loss;
    try {
      loss = LossOf(Giving(planned_.get()));
      loss.backward();
    } catch (const c10::OutOfMemoryError&) {
      ++(loss.defined() ? in_backward : in_forward);
    }
    training_device_.ClearLimit();
    loss.reset();
    ExpectNothingHeld(live);
  }
  EXPECT_GT(in_forward, 5);
  EXPECT_GT(in_backward, 2);
  ExpectEqual(plain, AfterStep(Giving(planned_.get())));
}

TEST_P(OnePlannedTransferTest, HostMemoryCanRunOut) {
  const Outcome plain = AfterStep(plain_);
  const Bytes live = meter_->current();
  ExpectEqual(plain, AfterStep(Giving(planned_.get())));
  {
    const size_t rest = static_cast<size_t>(device_->host()->peak().value()) - 1;
    const HostPool::Block others = device_->host()->Allocate((size_t{1} << 30) - rest);
    start_.Rewind();
    EXPECT_THROW(LossOf(Giving(planned_.get())).backward(), c10::OutOfMemoryError);
  }
  ExpectNothingHeld(live);
  ExpectEqual(plain, AfterStep(Giving(planned_.get())));
}

// The input is away from the second forward to the last backward, what the head saved for good: it runs
// again.
TEST_P(OnePlannedTransferTest, WhatTheCallerHoldsOfInputAndOutputStaysHis) {
  const int last = chain_.length();
  Schedule schedule = StoreAllSchedule(chain_);
  schedule.insert(schedule.end() - last, {OffloadStart(kSaved, last), OffloadWait(kSaved, last),
                                          Discard(kSaved, last), ForwardSave(last)});
  schedule.insert(schedule.end() - 1,
                  {PrefetchStart(kActivation, 0), PrefetchWait(kActivation, 0)});
  schedule.insert(schedule.begin() + 2,
                  {OffloadStart(kActivation, 0), OffloadWait(kActivation, 0)});
  const Outcome plain = AfterStep(plain_);
  at::Tensor output;
  const auto planned = Make(schedule);
  const at::Tensor before = network_.input.clone();
  for (const bool gives : {true, false}) {
    const Forward forward = gives ? Giving(planned.get()) : ForwardOf(planned.get());
    at::Tensor seen;
    ExpectEqual(plain, AfterStep([&](const at::Tensor& input) {
                  output = forward(input);
                  seen = output.clone();
                  EXPECT_TRUE(network_.input.equal(before));
                  output.register_hook([&](const at::Tensor&) {
                    EXPECT_TRUE(output.equal(seen));
                    EXPECT_TRUE(network_.input.equal(before));
                  });
                  return output;
                }));
    EXPECT_TRUE(output.equal(seen));
    EXPECT_TRUE(network_.input.equal(before));
  }
  EXPECT_GT(device_->offloaded().count, 2);
}

INSTANTIATE_TEST_SUITE_P(Devices, OnePlannedTransferTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

TEST_F(SimulatedTransferTest, WithoutALinkTransfersAreRefused) {
  const absl::Status status = PlannedModule::Create(&model_, chain_, schedule_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("the device has no link"));
}

}  // namespace
}  // namespace stowage
