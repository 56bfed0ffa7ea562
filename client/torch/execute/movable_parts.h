// What of a node's graph can go to host memory.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_MOVABLE_PARTS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_MOVABLE_PARTS_H_

#include <functional>
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

// A stage whose memory cannot go to the host as the plan has it.
class ImmovableError : public StageRuleError {
 public:
  using StageRuleError::StageRuleError;
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

// What of the graph that `forward` makes can go to host memory: `parts`, called after it. `forward` returns those of its
// outputs that have memory of their own. Throws ImmovableError where the graph holds
// more than output and parts, by what the device's meter counts for this thread, and where
// saved-tensor hooks are forbidden (Python's disable_saved_tensors_hooks). Where the meter counts for all
// threads at once (CUDA), what others allocate meanwhile is taken for the graph's, unless they step, too:
// then it is a StageRuleError that says so. There a forward that is not `warm`, the first of its kind on this thread, may
// take more: libraries take workspaces then, which they keep; a graph that holds it takes it the next time, too.
std::vector<StoragePtr> MovableParts(ExecutionDevice* device,
                                     const std::function<Tensors()>& forward,
                                     const std::function<std::vector<StoragePtr>()>& parts,
                                     bool warm);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_MOVABLE_PARTS_H_
