// Trains a model plain and by plans, from the same start on the same batch, and holds one against
// the other bit for bit.
#ifndef STOWAGE_CLIENT_CLI_TRAINING_COMPARISON_H_
#define STOWAGE_CLIENT_CLI_TRAINING_COMPARISON_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "client/agent/batch.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/model/model_state.h"
#include "client/torch/model/model_tensors.h"
#include "solvers/model/digest.h"

namespace stowage {

// What one training run was like, step by step.
struct Trajectory {
  std::vector<StepReport> steps;
  std::vector<Digest> gradients;  // after each step
  Digest parameters;              // at the end, after the optimizer's last step
  Digest buffers;
  RandomState random;
  std::vector<at::Tensor> end;  // the parameters at the end, on the host; of the CPU's runs nothing

  Bytes peak() const;  // the highest of all steps
  Nanos median_time() const;
};

// How two runs of as many steps compare.
struct Equality {
  bool loss = false;
  bool gradients = false;
  bool parameters = false;  // at the end, as the two below
  bool buffers = false;
  bool random = false;

  bool all() const { return loss && gradients && parameters && buffers && random; }
};
Equality Compare(const Trajectory& a, const Trajectory& b);

// How far two runs of as many steps on a device are apart, as shares: of the losses, where that is most, and of the
// parameters at the end, as the lengths of vectors. 0: they are equal, or as good as equal.
struct Distance {
  double loss = 0;
  double parameters = 0;

  bool within(const Distance& other) const {
    return loss <= other.loss && parameters <= other.parameters;
  }
};
Distance DistanceOf(const Trajectory& a, const Trajectory& b);
// The greatest of two of them, each by itself: their spread.
Distance SpreadOf(const std::vector<Trajectory>& runs);
// Whether a run is as near to one of `runs` as those are to each other.
bool LiesWithin(const Distance& spread, const std::vector<Trajectory>& runs, const Trajectory& run);

// The batch's inputs are the step's own: it may drop them where its plan says so.
using StepFunction = std::function<absl::StatusOr<StepReport>(Batch batch)>;

// Trains one model again and again from where it was at construction. Not thread-safe.
class TrainingComparison {
 public:
  // Model and batch must outlive this. `plain` is a step of plain training; `seed` the random state that
  // every run starts from.
  TrainingComparison(const ModelTensors* model, const Batch* batch, uint64_t seed,
                     StepFunction plain);

  // As many steps of plain training, after one that warms the caches of LibTorch's kernels up.
  absl::StatusOr<Trajectory> TrainPlain(int steps) const;

  // Back to the start, then `steps` of stochastic gradient descent with momentum, each by `step`.
  absl::StatusOr<Trajectory> Train(int steps, const StepFunction& step) const;

  // One more step under a limit 64 bytes below `peak`, which must fail with the allocator's own
  // out-of-memory error, then one without a limit, whose gradients must be those of a plain step at
  // the same point. OK, or what was not so.
  absl::Status CheckLimit(Bytes peak, const StepFunction& step) const;

 private:
  void Restore() const;
  // On a copy of the batch's inputs.
  absl::StatusOr<StepReport> Step(const StepFunction& step) const;

  const ModelTensors* model_;
  const Batch* batch_;
  uint64_t seed_;
  StepFunction plain_;
  c10::Device device_;                            // of the batch
  RandomState random_;                            // of the start
  std::vector<at::Tensor> parameters_, buffers_;  // copies of the start
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TRAINING_COMPARISON_H_
