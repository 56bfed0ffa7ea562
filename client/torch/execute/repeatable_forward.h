// Lets a part of a model run forward again as it ran first in a step. Not thread-safe.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_REPEATABLE_FORWARD_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_REPEATABLE_FORWARD_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/torch/base/tensors.h"
#include "client/torch/model/model_state.h"

namespace stowage {

// Whether the calling thread runs a part of a model once more than plain training does: a recompute, or to measure it. For
// parts that count or log what they do; what a part computes must not depend on it.
bool IsRecomputing();

class RepeatableForward {
 public:
  // The first time `forward` draws from the random generators, of the CPU and of `device`, and updates `buffers`. Later it sees both
  // as they were before the first time and leaves them as it found them, also when an exception
  // flies.
  Tensors Run(const std::vector<at::Tensor>& buffers, c10::Device device,
              absl::FunctionRef<Tensors()> forward);
  // The first time, of what does not run again: keeps nothing.
  Tensors RunOnce(absl::FunctionRef<Tensors()> forward);

  bool has_run() const { return has_run_; }

 private:
  struct Before {
    RandomState random;
    BufferState buffers;
  };

  // Apart, since random state is large: of most parts of a step there is none.
  std::unique_ptr<const Before> before_;
  bool has_run_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_REPEATABLE_FORWARD_H_
