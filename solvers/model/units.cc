#include "solvers/model/units.h"

#include <array>

#include "absl/strings/str_format.h"

namespace stowage {

std::string ToString(Bytes bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes.value());
  size_t unit = 0;
  while (value >= 1024.0 && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  if (unit == 0) return absl::StrFormat("%d B", bytes.value());
  return absl::StrFormat("%.2f %s", value, kUnits[unit]);
}

std::string ToString(Nanos nanos) {
  const double value = static_cast<double>(nanos.value());
  if (value < 1e3) return absl::StrFormat("%d ns", nanos.value());
  if (value < 1e6) return absl::StrFormat("%.1f us", value / 1e3);
  if (value < 1e9) return absl::StrFormat("%.1f ms", value / 1e6);
  return absl::StrFormat("%.3f s", value / 1e9);
}

}  // namespace stowage
