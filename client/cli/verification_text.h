// What a verification found, for people and for programs.
#ifndef STOWAGE_CLIENT_CLI_VERIFICATION_TEXT_H_
#define STOWAGE_CLIENT_CLI_VERIFICATION_TEXT_H_

#include <string>
#include <vector>

#include "client/cli/training_comparison.h"
#include "client/cli/verification.h"

namespace stowage {

struct VerificationReport {
  std::string model;
  bool graph = false;
  int steps = 0;
  Trajectory plain;
  std::vector<Verified> budgets;

  bool equal() const;  // no budget has a fault
  bool all_found() const;
};

// A table, and below it the faults.
std::string ToText(const VerificationReport& report);

// One JSON object; bytes and nanoseconds are numbers.
std::string ToJson(const VerificationReport& report);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_VERIFICATION_TEXT_H_
