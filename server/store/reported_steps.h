// How many steps each job has reported on each plan, to whichever of the servers that share plans: a later report
// is about the steps of the earlier ones, too.
#ifndef STOWAGE_SERVER_STORE_REPORTED_STEPS_H_
#define STOWAGE_SERVER_STORE_REPORTED_STEPS_H_

#include <cstdint>
#include <optional>

#include "solvers/model/canonical.h"
#include "solvers/model/units.h"

namespace stowage {

// The reports of one job on one plan.
struct ReportedPlan {
  PlanKey key;
  Bytes budget;
  int64_t revision = 0;
  uint64_t job = 0;
};

// Thread-safe.
class ReportedSteps {
 public:
  virtual ~ReportedSteps() = default;

  // The most steps that were reported before, 0 where none were or it is forgotten; from now on these, if they are
  // more. In one step: of two servers that ask at once one sees the other's. Nothing: it cannot be known now.
  virtual std::optional<int64_t> Raise(const ReportedPlan& plan, int64_t steps) = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REPORTED_STEPS_H_
