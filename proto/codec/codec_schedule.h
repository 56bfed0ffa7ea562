// Schedules between the contract and the solver library. Internal to proto/codec: codec.h is what
// others use.
#ifndef STOWAGE_PROTO_CODEC_CODEC_SCHEDULE_H_
#define STOWAGE_PROTO_CODEC_CODEC_SCHEDULE_H_

#include "absl/status/statusor.h"
#include "solvers/schedule/schedule.h"
#include "stowage/v1/plan.pb.h"

namespace stowage {

void WriteSchedule(const Schedule& schedule, v1::Schedule* out);
// Names of fields start with "schedule.".
absl::StatusOr<Schedule> ReadSchedule(const v1::Schedule& message);

}  // namespace stowage

#endif  // STOWAGE_PROTO_CODEC_CODEC_SCHEDULE_H_
