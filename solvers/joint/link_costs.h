// A link to host memory in doubles, for searches. Internal to solvers/joint.
#ifndef STOWAGE_SOLVERS_JOINT_LINK_COSTS_H_
#define STOWAGE_SOLVERS_JOINT_LINK_COSTS_H_

#include <cstdint>

#include "solvers/model/transfer_model.h"

namespace stowage {

// Of one direction, ns.
struct CopyRate {
  double per_byte = 0;
  double latency = 0;

  explicit CopyRate(const CopyCost& cost)
      : per_byte(1e9 / static_cast<double>(cost.bytes_per_second)),
        latency(static_cast<double>(cost.latency.value())) {}

  double Time(int64_t bytes) const { return latency + per_byte * static_cast<double>(bytes); }
};

struct LinkCosts {
  CopyRate out;
  CopyRate in;
  int64_t host_memory;

  explicit LinkCosts(const TransferModel& transfers)
      : out(transfers.to_host),
        in(transfers.to_device),
        host_memory(transfers.host_memory.value()) {}
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_JOINT_LINK_COSTS_H_
