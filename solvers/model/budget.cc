#include "solvers/model/budget.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr char kForms[] =
    "must be bytes (\"1500000000\", \"8GiB\", \"512 MB\"), a share of plain training's peak "
    "(\"60%\") "
    "or \"least\"";

absl::Status BadText(const std::string& text) {
  return FieldError("budget", '"' + text + '"', kForms);
}

// Bytes per unit; 0 for an unknown one.
double UnitFactor(const std::string& unit) {
  static constexpr std::pair<const char*, double> kUnits[] = {{"", 1.0},
                                                              {"b", 1.0},
                                                              {"kb", 1e3},
                                                              {"mb", 1e6},
                                                              {"gb", 1e9},
                                                              {"tb", 1e12},
                                                              {"kib", 1024.0},
                                                              {"mib", 1048576.0},
                                                              {"gib", 1073741824.0},
                                                              {"tib", 1099511627776.0}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name) return factor;
  }
  return 0.0;
}

absl::StatusOr<Budget> Checked(const std::string& text, Budget budget) {
  if (!ValidateBudget(budget).ok()) return BadText(text);
  return budget;
}

}  // namespace

Bytes ShareOf(const ShareOfStoreAll& share, Bytes store_all_peak) {
  // Exact where a double is not: peaks beyond 2^53.
  if (share.share == 1.0) return store_all_peak;
  const double bytes = share.share * static_cast<double>(store_all_peak.value());
  return Bytes(static_cast<int64_t>(std::floor(bytes)));
}

absl::Status ValidateBudget(const Budget& budget) {
  if (const Bytes* bytes = std::get_if<Bytes>(&budget)) {
    if (bytes->value() < 0) return FieldError("budget.bytes", bytes->value(), "must be >= 0");
  } else if (const auto* share = std::get_if<ShareOfStoreAll>(&budget)) {
    if (!(share->share > 0.0 && share->share <= 1.0)) {
      return FieldError("budget.share_of_store_all", absl::StrCat(share->share),
                        "must be in (0, 1]");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Budget> ParseBudget(const std::string& text) {
  std::string trimmed(absl::StripAsciiWhitespace(text));
  if (trimmed == "least") return Budget(LeastBudget{});
  const size_t digits = trimmed.find_first_not_of("0123456789.");
  const std::string number = trimmed.substr(0, digits);
  const std::string unit =
      digits == std::string::npos
          ? ""
          : absl::AsciiStrToLower(absl::StripAsciiWhitespace(trimmed.substr(digits)));
  int64_t exact = 0;
  if (unit.empty() && absl::SimpleAtoi(number, &exact)) return Checked(text, Bytes(exact));
  double value = 0.0;
  if (!absl::SimpleAtod(number, &value) || !std::isfinite(value)) return BadText(text);
  if (unit == "%") return Checked(text, ShareOfStoreAll{value / 100.0});
  const double bytes = value * UnitFactor(unit);
  if (UnitFactor(unit) == 0.0 || bytes >= static_cast<double>(kMaxTotal)) return BadText(text);
  return Checked(text, Bytes(static_cast<int64_t>(bytes)));
}

std::string ToString(const Budget& budget) {
  if (const Bytes* bytes = std::get_if<Bytes>(&budget)) return ToString(*bytes);
  if (const auto* share = std::get_if<ShareOfStoreAll>(&budget)) {
    return absl::StrFormat("%g%%", share->share * 100.0);
  }
  return "least";
}

}  // namespace stowage
