// What the latest steps by one plan took, and whether that is still what was predicted.
#ifndef STOWAGE_CLIENT_AGENT_STEP_WATCH_H_
#define STOWAGE_CLIENT_AGENT_STEP_WATCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/agent/agent_event.h"
#include "client/agent/agent_options.h"
#include "client/torch/execute/step_report.h"
#include "solvers/model/units.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// Not thread-safe.
class StepWatch {
 public:
  // Keeps the last `capacity` steps, at least 1.
  explicit StepWatch(int64_t capacity) : capacity_(static_cast<size_t>(capacity)) {}

  void Add(const StepReport& report);
  void Clear();

  int64_t steps() const { return steps_; }  // since Clear
  const StepReport& latest() const { return latest_; }
  // Over the last `last` steps, or all that are kept; there must be one. O(last).
  Nanos MedianTime(int64_t last) const;
  Bytes MedianPeak(int64_t last) const;

 private:
  template <class Value>
  Value MedianOf(const std::vector<Value>& ring, int64_t last) const;

  size_t capacity_;
  int64_t steps_ = 0;
  StepReport latest_;
  std::vector<Nanos> times_;  // rings
  std::vector<Bytes> peaks_;
};

struct Drift {
  ReplanReason reason;
  std::string words;
};

// Looks when a window is full, after each `window` steps. A prediction of no time has none to be off.
std::optional<Drift> DriftOf(const StepWatch& watch, const Simulation& predicted,
                             const DriftOptions& options);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_STEP_WATCH_H_
