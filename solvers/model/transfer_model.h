// What copies between device and host memory cost: the part of a Device that the referee of
// schedules with transfers goes by (solvers/plan/simulate.h).
//
// Bytes, nanoseconds. Immutable by convention, hence safe to share between threads. All O(1).
#ifndef STOWAGE_SOLVERS_MODEL_TRANSFER_MODEL_H_
#define STOWAGE_SOLVERS_MODEL_TRANSFER_MODEL_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "solvers/model/device.h"
#include "solvers/model/units.h"

namespace stowage {

// One direction.
struct CopyCost {
  int64_t bytes_per_second = 0;
  Nanos latency;  // of each copy
};

struct TransferModel {
  CopyCost to_host;
  CopyCost to_device;
  bool full_duplex = false;  // a channel each way; else both directions share one
  Bytes host_memory;         // that offloaded tensors may take at any time
};

// OK, or INVALID_ARGUMENT made by FieldError with names below "transfers.". Bandwidths are positive,
// the rest is not negative.
absl::Status ValidateTransferModel(const TransferModel& transfers);

// The link of a valid device; nothing if a direction was not measured or the job may not use host
// memory. A duplex that is not specified is half: a plan for it holds on both.
std::optional<TransferModel> TransfersOf(const Device& device);

// latency + ceil(bytes / bandwidth), for bytes >= 0 and a valid cost. What would reach kMaxTotal is
// kMaxTotal.
Nanos CopyTime(const CopyCost& cost, Bytes bytes);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_TRANSFER_MODEL_H_
