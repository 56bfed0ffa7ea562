// What `run` shows people.
#ifndef STOWAGE_CLIENT_CLI_RUN_TABLE_H_
#define STOWAGE_CLIENT_CLI_RUN_TABLE_H_

#include <string>

#include "client/cli/verification.h"

namespace stowage {

// One line for plain training, one for each budget.
std::string RunTable(const VerificationReport& report);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_RUN_TABLE_H_
