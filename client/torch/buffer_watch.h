// Which stages update buffers, and whether each keeps to its own: buffers that a stage does not
// list could not be put back after a recompute.
#ifndef STOWAGE_CLIENT_TORCH_BUFFER_WATCH_H_
#define STOWAGE_CLIENT_TORCH_BUFFER_WATCH_H_

#include <cstddef>
#include <vector>

#include "client/torch/chain_model.h"
#include "client/torch/model_state.h"

namespace stowage {

// Looks at the buffers of one stage at a time, so that watching all stages costs a few copies of
// the model's buffers, however many stages there are. Not thread-safe.
class BufferWatch {
 public:
  // Starts from what the buffers hold now. The model must outlive the watch.
  explicit BufferWatch(const ChainModel& model);

  // Throws StageRuleError if the buffers of stage l are not as the stages that list them left them.
  void CheckUntouched(int l) const;
  // To be called after stage l ran: whether it changed buffers that it lists. The loss lists none.
  bool TakeChanges(int l);

 private:
  BufferState Capture(size_t buffer) const;

  const std::vector<at::Tensor>& buffers_;
  std::vector<BufferState> known_;           // one per buffer of the model
  std::vector<std::vector<size_t>> listed_;  // by stage, indices into buffers_
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_BUFFER_WATCH_H_
