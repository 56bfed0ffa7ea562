// Which parts of a model (stages, nodes) update buffers, and whether each keeps to its own: buffers
// that a part does not list could not be put back after a recompute.
#ifndef STOWAGE_CLIENT_TORCH_MODEL_BUFFER_WATCH_H_
#define STOWAGE_CLIENT_TORCH_MODEL_BUFFER_WATCH_H_

#include <cstddef>
#include <vector>

#include "client/torch/model/model_state.h"
#include "client/torch/model/model_tensors.h"

namespace stowage {

// Looks at the buffers of one part at a time, so that watching all of them costs a few copies of the
// model's buffers, however many parts there are. Not thread-safe.
class BufferWatch {
 public:
  // Starts from what the buffers hold now. `listed` are those of each part. The model must outlive
  // the watch.
  BufferWatch(const ModelTensors& model, const std::vector<std::vector<at::Tensor>>& listed);

  // Throws StageRuleError if the buffers of a part are not as the parts that list them left them.
  void CheckUntouched(int part) const;
  // To be called after a part ran: whether it changed buffers that it lists.
  bool TakeChanges(int part);

 private:
  BufferState Capture(size_t buffer) const;

  const std::vector<at::Tensor>& buffers_;
  std::vector<BufferState> known_;           // one per buffer of the model
  std::vector<std::vector<size_t>> listed_;  // by part, indices into buffers_
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MODEL_BUFFER_WATCH_H_
