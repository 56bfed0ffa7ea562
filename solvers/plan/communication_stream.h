// The communication stream during a replay: when its ops run, which tensors they hold up, what
// memory they keep. Internal to the referees (simulate.h has the rules).
#ifndef STOWAGE_SOLVERS_PLAN_COMMUNICATION_STREAM_H_
#define STOWAGE_SOLVERS_PLAN_COMMUNICATION_STREAM_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "solvers/plan/stream_span.h"
#include "solvers/plan/tensor_uses.h"

namespace stowage {

class CommunicationStream {
 public:
  // What has ended for compute: when it did, and what it kept.
  struct Ended {
    Nanos end;
    Bytes kept;
  };

  // Whether there are ops for which compute has not waited.
  bool busy() const { return ended_ < ops_.size(); }

  // Puts an op behind those before it, when `now` has come. It keeps `kept` until compute has waited
  // for it. INVALID_ARGUMENT if the times overflow. O(uses).
  absl::StatusOr<StreamSpan> Start(const TensorUses& uses, Nanos now, Nanos time, Bytes kept);

  // Lets compute wait for the last op with which `uses` collides, hence for those before it.
  // O(uses), and amortised over all calls the ops.
  Ended WaitFor(const TensorUses& uses);
  Ended WaitForAll() { return WaitForFirst(ops_.size()); }

 private:
  // Ops are counted from 1 on: the last that used it.
  struct LastUse {
    size_t reader = 0;
    size_t writer = 0;
  };

  Ended WaitForFirst(size_t count);

  std::vector<Ended> ops_;
  size_t ended_ = 0;               // those for which compute has waited
  std::vector<LastUse> last_use_;  // by tensor; as far as any op has used
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_COMMUNICATION_STREAM_H_
