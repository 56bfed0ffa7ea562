// What autograd saves for the backward while a scope lives. SavedTensorScope finds the storages of these
// tensors; DropSavedScope keeps none of them.
//
// Both give autograd hooks for what this thread saves meanwhile. Those of SavedTensorScope keep the tensors as autograd
// would, check as it does that nobody has written over them since, and remember their storages. No
// other thread sees a difference, whatever engine is installed, also that of an embedded Python. Hooks
// that Python has in force around a scope do not see what is saved in it unless it yields, as those around an inner
// pair of Python's own hooks do not; all else that this thread asks an engine for, the installed one does.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_SAVED_TENSOR_SCOPE_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_SAVED_TENSOR_SCOPE_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "client/torch/base/tensors.h"
#include "client/torch/base/torch_status.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/offload/host_copies.h"

namespace stowage {

class SavedTensorRecord;

// Gives autograd the hooks of what this thread saves while an object of this class lives. Scopes nest: the innermost
// counts.
class PackingScope {
 public:
  PackingScope(const PackingScope&) = delete;
  PackingScope& operator=(const PackingScope&) = delete;

  // Called for every tensor that is saved.
  virtual std::unique_ptr<torch::autograd::SavedVariableHooks> MakeHooks() = 0;
  // Whether hooks that Python has in force around the scope come before those.
  virtual bool Yields() const { return false; }

 protected:
  PackingScope();
  virtual ~PackingScope();

 private:
  PackingScope* outer_;
};

// A stage whose memory cannot go to the host as the plan has it.
class ImmovableError : public StageRuleError {
 public:
  using StageRuleError::StageRuleError;
};

class SavedTensorScope : private PackingScope {
 public:
  SavedTensorScope();

  // Storages on the device that nobody holds at this moment but the graph, by autograd's saved tensors, in
  // the order in which they were saved first. Not among them: parameters, buffers, constants, what
  // the caller holds of inputs and output, and what is empty.
  std::vector<StoragePtr> OwnedByGraph(c10::Device device) const;

 private:
  std::unique_ptr<torch::autograd::SavedVariableHooks> MakeHooks() override;

  std::shared_ptr<SavedTensorRecord> record_;
};

// While an object of this class lives, autograd keeps nothing of what this thread's forwards save. LibTorch chooses
// kernels by whether a graph is made: those of LSTM, attention and others round differently without one. So a
// forward that is not to save makes its graph, too, and saves into the void. A backward through what was saved
// meanwhile is a StageRuleError. Scopes nest, also with those above: the innermost counts.
class DropSavedScope : private PackingScope {
 private:
  std::unique_ptr<torch::autograd::SavedVariableHooks> MakeHooks() override;
};

// Which nodes of a plan have run on which threads. Thread-safe.
class WarmNodes {
 public:
  // Node v runs on this thread: whether it has done so before.
  bool Run(int v);

 private:
  std::mutex mutex_;
  std::set<std::pair<int, std::thread::id>> have_run_;
};

// What of the graph that `forward` makes can go to host memory, as OwnedByGraph. `forward` returns those of its
// outputs that have memory of their own. Throws ImmovableError where the graph holds
// more than output and saved tensors, by what the device's meter counts for this thread, and where
// saved-tensor hooks are forbidden (Python's disable_saved_tensors_hooks). Where the meter counts for all
// threads at once (CUDA), what others allocate meanwhile is taken for the graph's, unless they step, too:
// then it is a StageRuleError that says so. There a forward that is not `warm`, the first of its kind on this thread, may
// take more: libraries take workspaces then, which they keep; a graph that holds it takes it the next time, too.
std::vector<StoragePtr> MovableParts(ExecutionDevice* device,
                                     const std::function<Tensors()>& forward);
// The same where the caller knows what the graph holds: `parts`, called after `forward`.
std::vector<StoragePtr> MovableParts(ExecutionDevice* device,
                                     const std::function<Tensors()>& forward,
                                     const std::function<std::vector<StoragePtr>()>& parts,
                                     bool warm = true);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_SAVED_TENSOR_SCOPE_H_
