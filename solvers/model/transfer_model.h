// What copies between device and host memory cost: the part of a Device that the evaluator of
// schedules with transfers goes by (solvers/schedule/evaluator.h).
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

// The class of links of about this speed: links of one class share plans. Of the slower direction, the
// nearest of 12 GB/s times a power of two as factors go: classes 128 + k, from 8.5 to 17 GB/s for
// k = 0. So what 16 lanes of each generation of PCIe measure, 12, 24 or 48 GB/s, lies in the middle of
// its class, and jitter of 40% up or 29% down stays in it. Never a class that a device states.
int32_t BandwidthClassOf(const TransferModel& transfers);

// latency + ceil(bytes / bandwidth), for bytes >= 0 and a valid cost. What would reach kMaxTotal is
// kMaxTotal.
Nanos CopyTime(const CopyCost& cost, Bytes bytes);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_TRANSFER_MODEL_H_
