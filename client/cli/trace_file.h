// --trace: what steps took, instruction by instruction, as files.
#ifndef STOWAGE_CLIENT_CLI_TRACE_FILE_H_
#define STOWAGE_CLIENT_CLI_TRACE_FILE_H_

#include <cstddef>

#include "absl/status/status.h"
#include "solvers/schedule/measured_step.h"

namespace stowage {

// Writes the text of a step of budget `number`, from 0 on, of `budgets` to where --trace says, and says so;
// nothing where it says nothing. INVALID_ARGUMENT if the file cannot be written.
absl::Status WriteTrace(const MeasuredStep& step, size_t number, size_t budgets);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TRACE_FILE_H_
