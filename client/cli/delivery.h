// Where what a command makes goes: to --out, or to standard output.
#ifndef STOWAGE_CLIENT_CLI_DELIVERY_H_
#define STOWAGE_CLIENT_CLI_DELIVERY_H_

#include <string>

#include "absl/status/status.h"

namespace stowage {

// Writes the file to --out, says so, and prints what there is to say about it; the file itself to standard
// output where --out is empty. Errors: WriteFile.
absl::Status Deliver(const std::string& content, const std::string& about);

// Writes a file beside it, and says so; nothing where `path` is empty.
absl::Status DeliverBeside(const std::string& path, const std::string& content);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_DELIVERY_H_
