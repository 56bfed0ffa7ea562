#include "client/torch/chain_profiler.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/torch/autocast_state.h"
#include "client/torch/gradients_aside.h"
#include "client/torch/median.h"
#include "client/torch/profile_pass.h"
#include "client/torch/torch_status.h"
#include "client/torch/torch_version.h"
#include "client/torch/tracking_allocator.h"

namespace stowage {
namespace {

using Passes = std::vector<std::vector<StageSample>>;

absl::Status CheckRequest(const ChainModel& model, const at::Tensor& input,
                          const ProfileOptions& options) {
  if (model.length() == 0) return absl::InvalidArgumentError("the model has no stage");
  if (!model.loss()) return absl::InvalidArgumentError("the model has no loss");
  if (!input.defined()) return absl::InvalidArgumentError("the input is an undefined tensor");
  if (options.warmup < 0 || options.repeats < 1) {
    return absl::InvalidArgumentError(absl::StrCat("warmup must be >= 0 and repeats >= 1, not ",
                                                   options.warmup, " and ", options.repeats));
  }
  return absl::OkStatus();
}

absl::StatusOr<Passes> RunPasses(const ChainModel& model, const at::Tensor& input,
                                 const at::Tensor& target, MemoryMeter* meter,
                                 const ProfileOptions& options) {
  const int counted = options.bytes_only ? 1 : options.repeats;
  const double total = 2.0 * (model.length() + 1) * (options.warmup + counted);
  int done = 0;
  const std::function<void()> stage_done = [&] {
    ++done;
    if (options.progress) options.progress(done / total);
  };
  Passes passes;
  for (int i = 0; i < options.warmup + counted; ++i) {
    auto pass = RunProfilePass(model, input, target, meter, stage_done);
    if (!pass.ok()) return pass.status();
    if (i >= options.warmup) passes.push_back(*std::move(pass));
  }
  return passes;
}

bool SameBytes(const StageSample& a, const StageSample& b) {
  return a.output == b.output && a.saved == b.saved && a.saved_tensors == b.saved_tensors &&
         a.output_gradient == b.output_gradient;
}

// The passes' samples of one stage as one stage.
absl::StatusOr<Stage> Combine(const ChainModel& model, int l, const Passes& passes,
                              bool with_times) {
  Stage stage;
  std::vector<Nanos> forward;
  std::vector<Nanos> backward;
  const StageSample& first = passes.front()[static_cast<size_t>(l)];
  stage.output = first.output;
  stage.saved = first.saved;
  stage.saved_tensors = first.saved_tensors;
  stage.output_gradient = first.output_gradient;
  for (const std::vector<StageSample>& pass : passes) {
    const StageSample& sample = pass[static_cast<size_t>(l)];
    if (!SameBytes(first, sample)) {
      return absl::FailedPreconditionError(
          absl::StrCat(model.Describe(l), ": its tensors change their size from run to run"));
    }
    stage.forward_saving_overhead =
        std::max(stage.forward_saving_overhead, sample.forward_saving_overhead);
    stage.forward_overhead = std::max(stage.forward_overhead, sample.forward_overhead);
    stage.backward_overhead = std::max(stage.backward_overhead, sample.backward_overhead);
    stage.random |= sample.random;
    stage.stateful |= sample.stateful;
    // A plan runs both kinds of forward and counts one time for both.
    forward.insert(forward.end(), {sample.forward_time, sample.forward_saving_time});
    backward.push_back(sample.backward_time);
  }
  if (with_times) {
    stage.forward_time = Median(std::move(forward));
    stage.backward_time = Median(std::move(backward));
  }
  return stage;
}

absl::StatusOr<Chain> MakeChain(const ChainModel& model, const at::Tensor& input,
                                const Passes& passes, bool with_times) {
  ChainSpec spec;
  spec.name = model.name();
  spec.input = Bytes(static_cast<int64_t>(input.nbytes()));
  spec.input_gradient = passes.front().front().output_gradient;
  for (int l = 1; l <= model.length() + 1; ++l) {
    absl::StatusOr<Stage> stage = Combine(model, l, passes, with_times);
    if (!stage.ok()) return stage.status();
    if (l > model.length()) {
      stage->name = "loss";
      stage->op_kind = model.loss_op_kind();
      spec.loss = *std::move(stage);
      break;
    }
    const ModelStage& described = model.stage(l);
    stage->name = described.name;
    stage->op_kind = described.op_kind;
    stage->random |= described.random;
    stage->stateful |= described.stateful;
    // What it changes is nowhere listed, so a recompute could not be undone.
    const bool hidden_state = stage->stateful && described.buffers.empty();
    stage->must_keep = described.must_keep || hidden_state;
    spec.stages.push_back(*std::move(stage));
  }
  return Chain::Create(std::move(spec));
}

}  // namespace

Device DescribeDevice() {
  const at::Context& context = at::globalContext();
  Device device;
  device.model = "cpu";
  device.framework = absl::StrCat("libtorch ", TORCH_VERSION);
  device.math_settings = absl::StrCat("threads=", at::get_num_threads(),
                                      " deterministic=", context.deterministicAlgorithms() ? 1 : 0,
                                      " mkldnn=", context.userEnabledMkldnn() ? 1 : 0);
  const AutocastState autocast = AutocastState::Capture();
  if (autocast.enabled()) {
    absl::StrAppend(&device.math_settings, " autocast=", autocast.ToString());
  }
  device.allocation_granularity = Bytes(1);
  return device;
}

absl::StatusOr<Profile> ProfileChain(const ChainModel& model, const at::Tensor& input,
                                     const at::Tensor& target, const ProfileOptions& options) {
  absl::Status status = CheckRequest(model, input, options);
  if (!status.ok()) return status;
  absl::StatusOr<MemoryMeter*> meter = MeterOrInstalled(options.meter);
  if (!meter.ok()) return meter.status();
  try {
    const GradientsAside aside(model);
    model.EnsureGradients();
    absl::StatusOr<Passes> passes = RunPasses(model, input, target, *meter, options);
    if (!passes.ok()) return passes.status();
    absl::StatusOr<Chain> chain = MakeChain(model, input, *passes, !options.bytes_only);
    if (!chain.ok()) return chain.status();
    return Profile{model.name(), DescribeDevice(), *std::move(chain),
                   options.bytes_only ? CostSource::kBytesOnly : CostSource::kMeasured};
  } catch (...) {
    return CurrentExceptionToStatus("profiling", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
