// What every program of a cluster tells of its own process, under the names that they all have.
// Linux: read from /proc and the control groups at each scrape, some tens of microseconds and one look at
// each open file descriptor.
#ifndef STOWAGE_SERVER_OBSERVE_PROCESS_METRICS_H_
#define STOWAGE_SERVER_OBSERVE_PROCESS_METRICS_H_

#include <prometheus/collectable.h>
#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <vector>

#include "server/observe/process_limits.h"

namespace stowage {

// process_cpu_seconds_total, process_resident_memory_bytes, process_open_fds, process_max_fds, process_start_time_seconds,
// stowage_memory_limit_bytes. What cannot be read is left out. Thread-safe.
class ProcessMetrics final : public prometheus::Collectable {
 public:
  explicit ProcessMetrics(const ProcessSources& sources = {});
  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const ProcessSources sources_;
  const double start_seconds_;  // since the epoch
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_PROCESS_METRICS_H_
