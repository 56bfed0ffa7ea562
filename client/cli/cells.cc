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

double Fraction(Bytes part, Bytes whole) {
  return static_cast<double>(part.value()) / static_cast<double>(whole.value());
}

double Overhead(Nanos makespan, Nanos plain) {
  if (plain == Nanos(0)) return 0;
  return static_cast<double>(makespan.value()) / static_cast<double>(plain.value()) - 1;
}

}  // namespace stowage
