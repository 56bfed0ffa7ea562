// The three primitive ways to run a stage. Profiler and executor both go through here, so that what
// one measures is what the other does.
//
// Within a step the first forward of a stage draws from the random generator and updates buffers; a
// forward of the same stage again is a recompute: it sees random state and buffers of the first, and
// leaves generator and buffers as it found them, also when an exception flies. Forwards run under the
// autocast that was in force when the step began, backwards without. Functions throw what LibTorch
// and the stages throw, and StageRuleError. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_STAGE_RUNNER_H_
#define STOWAGE_CLIENT_TORCH_STAGE_RUNNER_H_

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <unordered_set>
#include <vector>

#include "client/torch/autocast_state.h"
#include "client/torch/chain_model.h"
#include "client/torch/parameter_gradients.h"
#include "client/torch/repeatable_forward.h"

namespace stowage {

// What a saving forward leaves: the graph hangs on the output; the input is its leaf and shares the
// activation's storage. The input's gradient comes to be where `gradient` points.
struct SavedForward {
  at::Tensor input;
  at::Tensor output;
  std::shared_ptr<at::Tensor> gradient;
};

class StageRunner {
 public:
  // The model must outlive the runner.
  explicit StageRunner(const ChainModel* model) : model_(model) {}

  // Forgets which stages have run. `target` goes to the loss.
  void BeginStep(at::Tensor target, OnGradientReady ready = {}, bool input_gradient = false);
  // The backwards come from L+1 on again, and so does what is made ready.
  void BeginBackwards(OnGradientReady ready);

  // Stage l in 1..L+1, saving nothing: by the same kernels as with a graph, which is gone at the end. The output owns
  // its storage.
  at::Tensor Forward(int l, const at::Tensor& input);
  // The same, and the graph is kept.
  SavedForward ForwardSaving(int l, const at::Tensor& input);
  // Uses up the graph, adds to the parameters' gradients (those of tied ones after their last
  // backward), returns the gradient of the input; undefined if there is none. An undefined `gradient`
  // means that nothing flows back, except into a scalar loss, which starts with 1.
  at::Tensor Backward(int l, const SavedForward& saved, at::Tensor gradient);

  int forwards() const { return forwards_; }
  int recomputed_forwards() const { return recomputed_forwards_; }

 private:
  const std::vector<at::Tensor>& BuffersOf(int l) const;
  bool MayRequireGradient(int l) const;
  bool OwnsStorage(const at::Tensor& output, const at::Tensor& input) const;
  at::Tensor BackwardOf(int l, const SavedForward& saved, at::Tensor gradient);
  bool MayDropSaved(int l) const;
  SavedForward RunWithGraph(int l, const at::Tensor& input);
  at::Tensor Call(int l, const at::Tensor& input);
  at::Tensor CallOnce(int l, const at::Tensor& input);

  const ChainModel* model_;
  at::Tensor target_;
  std::unordered_set<const c10::StorageImpl*> model_storages_;  // of parameters and buffers
  std::vector<RepeatableForward> runs_;                         // by stage
  std::vector<bool> needs_input_gradient_;
  AutocastState autocast_;
  std::optional<ParameterGradients> gradients_;
  int forwards_ = 0;
  int recomputed_forwards_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_STAGE_RUNNER_H_
