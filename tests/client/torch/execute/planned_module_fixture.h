// A network under a PlannedModule, and loops over it against the same loops over its stages as they are.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_EXECUTE_PLANNED_MODULE_FIXTURE_H_
#define STOWAGE_TESTS_CLIENT_TORCH_EXECUTE_PLANNED_MODULE_FIXTURE_H_

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "client/torch/execute/planned_module.h"
#include "client/torch/memory/memory_meter.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/error_of.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {

using Forward = std::function<at::Tensor(const at::Tensor&)>;

class PlannedTraining : public testing::Test {
 protected:
  explicit PlannedTraining(const std::string& name,
                           const TrainingDevice& device = TrainingDeviceNamed("cpu"))
      : training_device_(device),
        meter_(device.meter()),
        network_(MakeTestNetwork(name, device)),
        model_(network_.model),
        chain_(ChainWithTimes(model_, network_.input, network_.target, device.execution)),
        start_(model_, device.device),
        plain_([this](const at::Tensor& input) {
          at::Tensor x = input;
          for (int l = 1; l <= model_.length(); ++l) x = model_.stage(l).forward(x);
          return x;
        }) {}
  ~PlannedTraining() override { training_device_.ClearLimit(); }
  void SetUp() override { SKIP_IF_MISSING(training_device_); }

  std::unique_ptr<PlannedModule> Make(const Schedule& schedule) {
    auto planned = PlannedModule::Create(&model_, chain_, schedule, training_device_.execution);
    EXPECT_TRUE(planned.ok()) << planned.status();
    return std::move(planned).value();
  }

  Schedule RandomSchedule(unsigned seed) {
    std::mt19937 random(seed);
    return Disturb(chain_, RandomPersistentSchedule(chain_, &random), 3, &random);
  }

  at::Tensor LossOf(const Forward& forward) {
    return model_.loss()(forward(network_.input), network_.target);
  }

  Outcome After(const std::function<double()>& train) {
    start_.Rewind();
    const double loss = train();
    return Outcome::Of(model_, loss, training_device_.device);
  }

  Outcome AfterStep(const Forward& forward) {
    return After([&] {
      const at::Tensor loss = LossOf(forward);
      loss.backward();
      return loss.item<double>();
    });
  }

  static Forward ForwardOf(PlannedModule* planned) {
    return [planned](const at::Tensor& input) { return planned->forward(input); };
  }

  // `train` runs a loop over a forward and returns a loss.
  void ExpectLikePlain(const std::function<double(const Forward&)>& train) {
    const Outcome plain = After([&] { return train(plain_); });
    for (const Schedule& schedule : {RecomputeAll(chain_), RandomSchedule(2)}) {
      const auto planned = Make(schedule);
      const Bytes live = meter_->current();
      ExpectEqual(plain, After([&] { return train(ForwardOf(planned.get())); }));
      EXPECT_EQ(meter_->current(), live);
    }
  }

  const TrainingDevice& training_device_;
  MemoryMeter* const meter_;
  TestNetwork network_;
  const ChainModel& model_;
  Chain chain_;
  Rewinder start_;
  const Forward plain_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_EXECUTE_PLANNED_MODULE_FIXTURE_H_
