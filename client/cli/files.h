// Whole files, with errors that name them.
#ifndef STOWAGE_CLIENT_CLI_FILES_H_
#define STOWAGE_CLIENT_CLI_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stowage {

// INVALID_ARGUMENT if it cannot be read: a path is input like any other.
absl::StatusOr<std::string> ReadFile(const std::string& path);
absl::Status WriteFile(const std::string& path, const std::string& content);

// The same, whole or not at all, also in a power cut: what was there before stays until all is written, beside it. A file that
// was not there is for its owner alone (mode 0600). What is no file, such as a pipe, is written to as it stands.
absl::Status ReplaceFile(const std::string& path, const std::string& content);

// Before work whose result is to be written there: OK, or what WriteFile would say. Leaves nothing there. OK for no
// path.
absl::Status CheckWritable(const std::string& path);

// The error of what the file holds, with its name: INVALID_ARGUMENT.
absl::Status ErrorIn(const std::string& path, const absl::Status& error);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_FILES_H_
