#include "client/cli/cells.h"

#include "absl/strings/str_format.h"

namespace stowage {

std::string Mebibytes(Bytes bytes) {
  return absl::StrFormat("%.2f", static_cast<double>(bytes.value()) / 1048576.0);
}

std::string Milliseconds(Nanos nanos) {
  return absl::StrFormat("%.3f", static_cast<double>(nanos.value()) / 1e6);
}

std::string Seconds(Nanos nanos) {
  return absl::StrFormat("%.3f", static_cast<double>(nanos.value()) / 1e9);
}

std::string YesNo(bool yes) { return yes ? "yes" : "NO"; }

}  // namespace stowage
