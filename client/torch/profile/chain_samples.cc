#include "client/torch/profile/chain_samples.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

bool HasBytes(const Stage& stage, const StageSample& sample) {
  return sample.output == stage.output && sample.saved == stage.saved &&
         sample.saved_tensors == stage.saved_tensors;
}

// The passes' samples of one stage as one stage.
absl::StatusOr<Stage> Combine(const ChainModel& model, int l, const Passes<StageSample>& passes,
                              bool with_times) {
  Stage stage;
  const StageSample& first = passes.front()[static_cast<size_t>(l)];
  stage.output = first.output;
  stage.saved = first.saved;
  stage.saved_tensors = first.saved_tensors;
  stage.output_gradient = first.output_gradient;
  for (const std::vector<StageSample>& pass : passes) {
    const StageSample& sample = pass[static_cast<size_t>(l)];
    const bool same = HasBytes(stage, sample);
    // The next stage makes it.
    if (!same || sample.output_gradient != stage.output_gradient) {
      return absl::FailedPreconditionError(absl::StrCat(
          model.Describe(same ? l + 1 : l), ": its tensors change their size from run to run"));
    }
    stage.forward_saving_overhead =
        std::max(stage.forward_saving_overhead, sample.forward_saving_overhead);
    stage.forward_overhead = std::max(stage.forward_overhead, sample.forward_overhead);
    stage.backward_overhead = std::max(stage.backward_overhead, sample.backward_overhead);
    stage.random |= sample.random;
    stage.stateful |= sample.stateful;
  }
  if (with_times) {
    const StageTimes times = TimesOf(passes, static_cast<size_t>(l));
    stage.forward_time = times.forward.median;
    stage.backward_time = times.backward.median;
  }
  return stage;
}

}  // namespace

absl::StatusOr<Chain> MakeChain(const ChainModel& model, Bytes input,
                                const Passes<StageSample>& passes, bool with_times, Bytes beside) {
  ChainSpec spec;
  spec.name = model.name();
  spec.input = input;
  spec.input_gradient = passes.front().front().output_gradient;
  for (int l = 1; l <= model.length() + 1; ++l) {
    absl::StatusOr<Stage> stage = Combine(model, l, passes, with_times);
    if (!stage.ok()) return stage.status();
    // One of these gradients is in memory at any time, by which copies are counted, too.
    stage->output_gradient += beside;
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
    if (stage->recomputable()) {
      SetStoppedRecompute(passes, static_cast<size_t>(l), with_times, &*stage);
    }
    spec.stages.push_back(*std::move(stage));
  }
  return Chain::Create(std::move(spec));
}

}  // namespace stowage
