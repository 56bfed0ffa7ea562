// An agent of a small network that really trains.
#ifndef STOWAGE_TESTS_CLIENT_AGENT_AGENT_FIXTURE_H_
#define STOWAGE_TESTS_CLIENT_AGENT_AGENT_FIXTURE_H_

#include <gtest/gtest.h>

#include "client/agent/agent.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/execution_device.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {

class RenamedCpu : public ExecutionDevice {
 public:
  c10::Device device() const override { return c10::Device(c10::DeviceType::CPU); }
  MemoryMeter* meter() override { return TrackingAllocator::Get(); }
  Device Hardware() const override {
    Device device = CpuHardware();
    device.model = "another";
    return device;
  }
};

class AgentTest : public ::testing::Test {
 protected:
  explicit AgentTest(const TrainingDevice& device = TrainingDeviceNamed("cpu"))
      : device_(device), network_(MakeTestNetwork("norm_mlp", device)) {
    options_.profile.repeats = 2;
    options_.device = device.execution;
  }
  void SetUp() override { SKIP_IF_MISSING(device_); }

  Agent LocalAgent() { return Agent(&network_.model, options_); }

  // The profile and plan that this model gets when it is planned here.
  AdoptedPlan LocalPlan(const Budget& budget) {
    Agent agent = LocalAgent();
    const absl::StatusOr<AdoptedPlan> adopted = agent.Plan(network_.input, network_.target, budget);
    EXPECT_TRUE(adopted.ok()) << adopted.status();
    return adopted.value();
  }

  const TrainingDevice& device_;
  TestNetwork network_;
  AgentOptions options_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_AGENT_AGENT_FIXTURE_H_
