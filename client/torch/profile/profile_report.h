// How far the times of a profile can be trusted: what a profile itself does not say.
#ifndef STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_REPORT_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_REPORT_H_

#include <optional>
#include <string>
#include <vector>

#include "client/torch/profile/transfer_meter.h"
#include "solvers/model/units.h"

namespace stowage {

// Of the times that one median was taken of, a quarter is below the lower quartile, a quarter above the
// upper one.
struct TimeSpread {
  Nanos lower_quartile;
  Nanos median;
  Nanos upper_quartile;
  int samples = 0;
};

struct StageTimes {
  TimeSpread forward;  // of forwards that save and of such that do not
  TimeSpread backward;
};

// How the sum of all times compares with whole steps by the plan that stores everything, as the executor runs it, one
// after each pass.
struct Calibration {
  // The times of the profile are those measured times `factor`; if not, 1 and why.
  bool applied = false;
  double factor = 1;
  std::string why_not;

  Nanos stages;  // the sum as it was measured
  Nanos step;    // median of the whole steps; 0 if none was run to its end
  int steps = 0;
  // Half of the passes, calibrated, differ from the step beside them by no more than this share of it.
  double residual = 0;
};

struct ProfileReport {
  int passes = 0;  // that count
  // As the profile has them, calibrated. Of a chain those of stages 1..L+1, of a graph those of its
  // vertices; empty where only bytes were measured.
  std::vector<StageTimes> stages;
  Calibration calibration;
  std::optional<MeasuredTransfers> transfers;  // where they were asked for
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_PROFILE_REPORT_H_
