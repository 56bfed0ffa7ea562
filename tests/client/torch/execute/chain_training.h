// A small network, its profile, and steps by schedules held against the evaluator and plain training.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_EXECUTE_CHAIN_TRAINING_H_
#define STOWAGE_TESTS_CLIENT_TORCH_EXECUTE_CHAIN_TRAINING_H_

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <variant>

#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/schedule/simulation.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {

class ChainTraining {
 protected:
  explicit ChainTraining(const std::string& network,
                         const TrainingDevice& device = TrainingDeviceNamed("cpu"))
      : training_device_(device),
        meter_(device.meter()),
        network_(MakeTestNetwork(network, device)),
        buffers_(BufferState::Capture(network_.model.buffers())),
        random_(RandomState::Capture(device.device)),
        start_(network_.model, device.device) {}

  void Rewind() { start_.Rewind(); }

  Outcome After(const StepReport& report) const {
    return Outcome::Of(network_.model, report.loss, training_device_.device);
  }

  Chain Profiled() {
    ProfileOptions options;
    options.bytes_only = true;
    options.device = training_device_.execution;
    auto profile = ProfileChain(network_.model, network_.input, network_.target, options);
    EXPECT_TRUE(profile.ok()) << profile.status();
    return std::get<Chain>(profile.value().problem);
  }

  // One step, which must do as the evaluator says and as plain training does.
  StepReport ExpectExact(Executor* executor, const Schedule& schedule, const Outcome& plain) {
    Rewind();
    const at::Tensor input = network_.input.clone();
    const Bytes live = meter_->current();
    auto report = executor->Step(input, network_.target);
    EXPECT_TRUE(report.ok()) << report.status();
    if (!report.ok()) return {};
    EXPECT_EQ(meter_->current(), live);
    EXPECT_TRUE(input.equal(network_.input));
    ExpectEqual(plain, After(*report));
    const Simulation& simulated = executor->prediction();
    EXPECT_LE(report->peak.value(), simulated.peak.value());
    EXPECT_LE(report->offloaded, simulated.offloaded);
    EXPECT_LE(report->prefetched, simulated.prefetched);
    EXPECT_LE(report->host_peak, simulated.host_peak);
    // Elsewhere plans count whole blocks.
    if (training_device_.exact) {
      EXPECT_GE(report->peak.value(), simulated.peak.value());
      EXPECT_GE(report->offloaded, simulated.offloaded);
      EXPECT_GE(report->prefetched, simulated.prefetched);
      EXPECT_GE(report->host_peak, simulated.host_peak);
    }
    EXPECT_EQ(report->recomputed_forwards, simulated.recomputed_forwards);
    EXPECT_EQ(report->forwards, simulated.recomputed_forwards + network_.model.length() + 1);
    std::array<int, 10> counts{};
    for (const Instruction& instruction : schedule) ++counts[static_cast<size_t>(instruction.op)];
    EXPECT_EQ(report->counts, counts);
    return *report;
  }

  Outcome Plain() {
    Rewind();
    auto report = PlainStep(network_.model, network_.input, network_.target, meter_);
    EXPECT_TRUE(report.ok()) << report.status();
    return After(report.value());
  }

  const TrainingDevice& training_device_;
  MemoryMeter* const meter_;
  TestNetwork network_;
  BufferState buffers_;
  RandomState random_;

 private:
  Rewinder start_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_EXECUTE_CHAIN_TRAINING_H_
