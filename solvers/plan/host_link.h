// The link to host memory during a replay: which tensors are on their way or away, when their copies
// run, what they take of host memory. Internal to the referees (simulate.h has the rules).
//
// Tensors go by numbers that the referee gives them. It checks that an op finds its tensor where the
// op needs it; the link keeps the books.
#ifndef STOWAGE_SOLVERS_PLAN_HOST_LINK_H_
#define STOWAGE_SOLVERS_PLAN_HOST_LINK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/stream_span.h"

namespace stowage {

class HostLink {
 public:
  // kNone: nothing of the tensor is on the host. kLeaving and kComing: from the start of a copy to
  // its wait. kOnHost: between the wait of the offload and the start of the prefetch.
  enum class State : uint8_t { kNone, kLeaving, kOnHost, kComing };

  HostLink(const TransferModel& transfers, size_t tensors);

  State state(size_t tensor) const { return state_[tensor]; }

  // Starts a copy, to the host of a tensor in kNone, to the device of one in kOnHost: when `now` has
  // come and the copy before it on its channel has ended. INVALID_ARGUMENT if host memory does not
  // hold it, or a sum overflows.
  absl::StatusOr<StreamSpan> Start(Stream direction, size_t tensor, Bytes bytes, Nanos now);
  // Ends the copy of a tensor in kLeaving or kComing: when that is.
  Nanos Wait(size_t tensor, Bytes bytes);
  // Drops what the host holds of a tensor in kOnHost.
  void Drop(size_t tensor, Bytes bytes);

  Bytes host() const { return host_; }
  // Sums over all copies so far, by direction.
  Bytes sent() const { return sent_; }
  Bytes fetched() const { return fetched_; }

 private:
  const TransferModel transfers_;
  std::vector<State> state_;
  std::vector<Nanos> end_;          // of the tensor's last copy
  std::array<Nanos, 2> free_ = {};  // when each channel has done what was started; half duplex: [0]
  Bytes host_;
  Bytes sent_;
  Bytes fetched_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_HOST_LINK_H_
