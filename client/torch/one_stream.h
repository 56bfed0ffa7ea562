// What an executor that runs on one stream refuses.
#ifndef STOWAGE_CLIENT_TORCH_ONE_STREAM_H_
#define STOWAGE_CLIENT_TORCH_ONE_STREAM_H_

#include "absl/status/status.h"
#include "solvers/plan/schedule.h"

namespace stowage {

// UNIMPLEMENTED that names the first transfer or communication of the schedule, if there is any.
absl::Status CheckOneStream(const Schedule& schedule);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_ONE_STREAM_H_
