// What a verification found, for people and for programs.
#ifndef STOWAGE_CLIENT_CLI_VERIFICATION_TEXT_H_
#define STOWAGE_CLIENT_CLI_VERIFICATION_TEXT_H_

#include <string>

#include "client/cli/listing.h"
#include "client/cli/verification.h"

namespace stowage {

// A table of the budgets, and below it the faults.
std::string ToText(const VerificationReport& report);

// One JSON object, with every step and every event; bytes and nanoseconds are numbers.
std::string ToJson(const VerificationReport& report);

// One row for plain training, one for each budget.
Listing BudgetsOf(const VerificationReport& report);

// One row for each step of plain training and within each budget; of a budget without a plan one that says so.
Listing StepsOf(const VerificationReport& report);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_VERIFICATION_TEXT_H_
