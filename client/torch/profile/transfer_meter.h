// Measures a device's link to host memory: what copies cost each way, as plans reckon with it.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_TRANSFER_METER_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_TRANSFER_METER_H_

#include <functional>

#include "absl/status/statusor.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"

namespace stowage {

struct TransferOptions {
  int repeats = 5;  // times that the median is taken of
  // No copy is larger, nor than half of the host memory.
  Bytes largest{int64_t{16} << 20};
  // What compute does beside the copies, much shorter than they are; empty: products of matrices.
  std::function<void()> load;
};

struct MeasuredTransfers {
  // `host_memory` is the limit of the device's host pool.
  TransferModel model;
  // Most that the copies of one size differ from the model, as a share of what it says.
  double to_host_residual = 0;
  double to_device_residual = 0;
  // A copy each way at once, as a share of one after the other: 1 on one channel, near 1/2 on two.
  double both_ways = 0;
  // Share of the copies' time in which compute was busy.
  double computing = 0;
};

// Copies of several sizes, as many in a row on the channel as take a while, each measured as long as
// compute works on `load` for most of the time, and all of it in rounds. Latency and bandwidth are the
// line through the medians (FitLine). What the device's link says of its speed is not looked at, but where
// that has one channel only one is found. A device without a link needs host memory alone; what was measured can be its
// link from then on (ExecutionDevice::SetLink).
//
// INVALID_ARGUMENT: options out of range. FAILED_PRECONDITION: no host pool, less than 1 MiB of host memory, or
// no copy is slower the larger it is. RESOURCE_EXHAUSTED: no memory for a copy each way, on the device
// or free on the host. INTERNAL: what the device throws. Not thread-safe; nothing else may use the
// device.
absl::StatusOr<MeasuredTransfers> MeasureTransfers(ExecutionDevice* device,
                                                   const TransferOptions& options = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_TRANSFER_METER_H_
