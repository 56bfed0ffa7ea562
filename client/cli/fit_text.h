// What batches fit, for people and for programs.
#ifndef STOWAGE_CLIENT_CLI_FIT_TEXT_H_
#define STOWAGE_CLIENT_CLI_FIT_TEXT_H_

#include <cstdint>
#include <string>

#include "client/cli/batch_fitting.h"
#include "client/cli/plan_flags.h"
#include "solvers/model/budget.h"

namespace stowage {

struct FitTitle {
  std::string name;     // of the network
  std::string details;  // size and device, for people
  std::string device;   // the kind that costs are modelled on; empty: none
  bool modelled = false;
};

// Whether the batch that was asked for fits; for 0, any.
bool Fits(const BatchFitting& fitting, int64_t asked);

// The sum of the memory, the answers, and the batches worth showing as a table; as JSON all batches, as CSV
// all batches alone.
std::string FitReport(const FitTitle& title, const DeviceBudget& budget,
                      const BatchFitting& fitting, int64_t asked, Format format);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_FIT_TEXT_H_
