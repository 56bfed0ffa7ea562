// Steps in C++ inside a Python process, plain ones and by plans that move what graphs saved: the shared
// library that hooks_test.py loads.
//
// Each function returns a line of text that lives until the next call: "ok ", the loss and a digest of
// all gradients, or what went wrong.
#include <ATen/Parallel.h>

#include <exception>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/state_digest.h"
#include "client/torch/offload/simulated_device.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/instance.h"
#include "tests/client/torch/random_schedule.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

class Training {
 public:
  std::string Plain() {
    Rewind();
    return Text(PlainStep(network_.model, network_.input, network_.target));
  }

  // `alone`: nothing else takes memory meanwhile.
  std::string ByPlan(const Schedule& schedule, bool alone) {
    Rewind();
    auto executor = Executor::Create(&network_.model, chain_, schedule, device_.get());
    if (!executor.ok()) return executor.status().ToString();
    const auto report = (*executor)->Step(network_.input.clone(), network_.target);
    if (alone && report.ok() && report->peak != (*executor)->prediction().peak) {
      return absl::StrCat("peak ", report->peak.value(), ", predicted ",
                          (*executor)->prediction().peak.value());
    }
    return Text(report);
  }

  Schedule StoreAll() const { return StoreAllSchedule(chain_); }

  // Recomputes at random, and takes tensors to the host and back, those that graphs saved among them.
  Schedule Random(int seed) const {
    std::mt19937 random(static_cast<unsigned>(seed));
    return WithTrips(chain_, link_, RandomPersistentSchedule(chain_, &random), 8, &random);
  }

 private:
  static Chain Profiled(const TestNetwork& network) {
    ProfileOptions options;
    options.bytes_only = true;
    const auto profile = ProfileChain(network.model, network.input, network.target, options);
    return std::get<Chain>(profile.value().problem);
  }

  void Rewind() {
    buffers_.Restore();
    random_.Restore();
    network_.model.ZeroGradients();
  }

  std::string Text(const absl::StatusOr<StepReport>& report) const {
    if (!report.ok()) return report.status().ToString();
    return absl::StrCat("ok ", report->loss.Get(), " ", GradientDigest(network_.model).ToHex());
  }

  TestNetwork network_ = MakeTestNetwork("norm_cnn");
  BufferState buffers_ = BufferState::Capture(network_.model.buffers());
  RandomState random_ = RandomState::Capture();
  TransferModel link_ = FastLink(/*full_duplex=*/true);
  std::unique_ptr<SimulatedDevice> device_ = SimulatedDevice::Create(link_).value();
  Chain chain_ = Profiled(network_);
};

Training& TheTraining() {
  static auto* const training = new Training();
  return *training;
}

const char* Run(const std::function<std::string()>& step) {
  static auto* const text = new std::string();
  try {
    *text = step();
  } catch (const std::exception& error) {
    *text = error.what();
  }
  return text->c_str();
}

}  // namespace
}  // namespace stowage

extern "C" {

const char* StowageStart() {
  return stowage::Run([] {
    stowage::TrackingAllocator::Install();
    at::set_num_threads(1);
    return stowage::TheTraining().Plain();
  });
}

const char* StowagePlainStep() {
  return stowage::Run([] { return stowage::TheTraining().Plain(); });
}

const char* StowageStoreAllStep() {
  return stowage::Run(
      [] { return stowage::TheTraining().ByPlan(stowage::TheTraining().StoreAll(), false); });
}

const char* StowageMovingStep(int seed, int alone) {
  return stowage::Run([=] {
    return stowage::TheTraining().ByPlan(stowage::TheTraining().Random(seed), alone != 0);
  });
}

}  // extern "C"
