// The passes over a model that its profile is made of, whatever its shape.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_PASSES_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_PASSES_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/model/model_tensors.h"
#include "client/torch/offload/stage_timer.h"
#include "client/torch/profile/cost_meter.h"
#include "client/torch/profile/profile_options.h"
#include "client/torch/profile/profile_times.h"
#include "client/torch/profile/whole_steps.h"

namespace stowage {

// INVALID_ARGUMENT: warm-up or repeats out of range, or an input, all of which are defined, is on another
// device than the options say.
absl::Status CheckPasses(const ProfileOptions& options, const std::vector<at::Tensor>& inputs);

// That the options say, with its link, which is put into the report, too, if that is asked for. Errors:
// MeasureTransfers.
absl::StatusOr<Device> ProfiledDevice(const ProfileOptions& options);

// What the options say to measure with. FAILED_PRECONDITION: nothing measures memory.
struct ProfileMeters {
  MemoryMeter* memory;
  std::unique_ptr<StageTimer> timer;
  Bytes granularity;  // see ExecutionDevice
};
absl::StatusOr<ProfileMeters> MakeProfileMeters(const ProfileOptions& options);

// Of the device's memory, what is free; of the host's where that is not known.
Bytes FreeMemoryOf(const ExecutionDevice* device);

// RESOURCE_EXHAUSTED: there is no room for gradients of the model, one of each, which a profile makes and adds to.
absl::Status CheckGradientRoom(const ModelTensors& model, const ExecutionDevice* device);

// Gives back to the device, at its end, what passes made its allocator keep: others need it. The device, which outlives it,
// may be null.
class UnusedMemory {
 public:
  explicit UnusedMemory(ExecutionDevice* device) : device_(device) {}
  ~UnusedMemory();
  UnusedMemory(const UnusedMemory&) = delete;
  UnusedMemory& operator=(const UnusedMemory&) = delete;

 private:
  ExecutionDevice* const device_;
};

// As the options say, in what memory is free now.
WholeSteps MakeWholeSteps(const ProfileOptions& options, const std::vector<at::Tensor>& inputs);

// Passes that do not count. On a GPU there is one in any case: in the first, libraries take workspaces that they keep. They do
// so for each thread, so that one more runs on the thread of autograd's where recomputes will.
int WarmupOf(const ProfileOptions& options);
void WarmUpBackwardsThread(const ProfileOptions& options, const std::function<void()>& pass);

// Whether every pass may look at buffers: on a GPU the first alone does, which the others then need not
// wait for.
bool WatchesEveryPass(const ProfileOptions& options);

// The passes that count, each made by `run_pass(watch, done)`, which calls `done` so many times, with a
// whole step after each, which `make_step(passes)` makes of those there are at first. A pass goes over the whole model,
// so that the repeats of one stage lie as far apart as they can.
template <class Sample, class RunPass, class MakeStep>
absl::StatusOr<Passes<Sample>> RunPasses(const ProfileOptions& options, int calls_of_done,
                                         const RunPass& run_pass, const MakeStep& make_step,
                                         WholeSteps* steps) {
  const int counted = options.bytes_only ? 1 : options.repeats;
  const int warmup = WarmupOf(options);
  // A step takes about as long as a pass.
  const bool with_steps = steps->wanted();
  const int rounds = warmup + counted + (with_steps ? counted : 0);
  const double total = static_cast<double>(calls_of_done) * rounds;
  int calls = 0;
  const auto advance = [&](int by) {
    calls += by;
    if (options.progress) options.progress(calls / total);
  };
  const std::function<void()> done = [&] { advance(1); };
  Passes<Sample> passes;
  std::vector<bool> stateful;  // found so by any pass
  // What fails there fails here, too, and is told then.
  WarmUpBackwardsThread(options, [&] { run_pass(false, [] {}).IgnoreError(); });
  for (int i = 0; i < warmup + counted; ++i) {
    absl::StatusOr<std::vector<Sample>> pass = run_pass(i == 0 || WatchesEveryPass(options), done);
    if (!pass.ok()) return pass.status();
    stateful.resize(pass->size(), false);
    for (size_t s = 0; s < pass->size(); ++s) {
      stateful[s] = (*pass)[s].stateful |= stateful[s];
    }
    if (i < warmup) continue;
    passes.push_back(*std::move(pass));
    if (!with_steps) continue;
    steps->Run([&]() -> absl::StatusOr<WholeStep> { return make_step(passes); });
    advance(calls_of_done);
  }
  return passes;
}

// Makes the times of the passes add up to a whole step, where that can be, and reports on them; samples
// before `first` are of nothing that has a time.
template <class Sample>
void FinishTimes(const ProfileOptions& options, const WholeSteps& steps, size_t first,
                 Passes<Sample>* passes) {
  std::vector<Nanos> times;
  for (const std::vector<Sample>& pass : *passes) times.push_back(StepTime(pass));
  Calibration calibration = steps.CalibrationOf(SumOfMedians(*passes), times);
  if (calibration.applied) ScaleTimes(calibration.factor, passes);
  if (options.report == nullptr) return;
  ProfileReport report;
  report.passes = static_cast<int>(passes->size());
  report.calibration = std::move(calibration);
  for (size_t i = first; i < passes->front().size() && !options.bytes_only; ++i) {
    report.stages.push_back(TimesOf(*passes, i));
  }
  *options.report = std::move(report);
}

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_PASSES_H_
