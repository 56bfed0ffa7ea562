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

namespace {

int64_t StatesPerByte(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return 0;
    case OptimizerKind::kMomentum:
      return 1;
    case OptimizerKind::kAdam:
      return 2;
  }
  return 0;
}

const char* NameOf(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "SGD";
    case OptimizerKind::kMomentum:
      return "with momentum";
    case OptimizerKind::kAdam:
      return "Adam";
  }
  return "unknown";
}

std::vector<DeviceBudget::Item> Subtracted(const ModelBytes& bytes, const DeviceLimit& limit) {
  const char* gradients = bytes.allocated == bytes.trained ? "gradients (allocated)"
                          : bytes.allocated == Bytes(0)    ? "gradients (to be allocated)"
                                                           : "gradients (partly allocated)";
  const auto reserve =
      static_cast<int64_t>(static_cast<double>(limit.memory.value()) * limit.reserve);
  std::vector<DeviceBudget::Item> items = {{"parameters", bytes.parameters},
                                           {"buffers", bytes.buffers},
                                           {gradients, bytes.trained},
                                           {"sums of tied parameters' gradients", bytes.tied}};
  if (limit.optimizer_state) {
    items.push_back({"optimizer state (given)", *limit.optimizer_state});
  } else {
    items.push_back({absl::StrCat("optimizer state (", NameOf(limit.optimizer), ", estimated)"),
                     Bytes(bytes.trained.value() * StatesPerByte(limit.optimizer))});
  }
  items.push_back({"communication buckets", limit.buckets});
  items.push_back({"other tensors of the job", limit.other});
  items.push_back(
      {absl::StrFormat("reserve (%g%% of the device)", limit.reserve * 100), Bytes(reserve), true});
  return items;
}

}  // namespace

absl::Status CheckDeviceLimit(const std::string& field, const DeviceLimit& limit) {
  const auto check = [&field](const char* name, Bytes bytes) {
    if (bytes >= Bytes(0) && bytes <= Bytes(kMaxTotal)) return absl::OkStatus();
    return FieldError(absl::StrCat(field, ".", name), bytes.value(), "must be in [0, 2^62]");
  };
  if (limit.memory <= Bytes(0)) {
    return FieldError(absl::StrCat(field, ".memory"), limit.memory.value(), "must be > 0");
  }
  absl::Status status = check("memory", limit.memory);
  if (status.ok()) status = check("optimizer_state", limit.optimizer_state.value_or(Bytes(0)));
  if (status.ok()) status = check("buckets", limit.buckets);
  if (status.ok()) status = check("other", limit.other);
  if (!status.ok()) return status;
  if (limit.reserve >= 0 && limit.reserve < 1) return absl::OkStatus();
  return FieldError(absl::StrCat(field, ".reserve"), absl::StrCat(limit.reserve),
                    "must be in [0, 1)");
}

absl::StatusOr<DeviceBudget> SubtractFrom(const std::string& field, const DeviceLimit& limit,
                                          const ModelBytes& model) {
  absl::Status status = CheckDeviceLimit(field, limit);
  if (!status.ok()) return status;
  DeviceBudget budget{limit.memory, Subtracted(model, limit), limit.memory};
  for (const DeviceBudget::Item& item : budget.subtracted) {
    if (item.bytes >= budget.activations) {
      return FieldError(absl::StrCat(field, ".memory"), limit.memory.value(),
                        absl::StrCat("leaves nothing for activations: of what is left, ",
                                     ToString(budget.activations), ", ", item.what, " take ",
                                     ToString(item.bytes)));
    }
    budget.activations -= item.bytes;
  }
  return budget;
}

std::string ToString(const DeviceBudget& budget) {
  const auto line = [](const std::string& what, Bytes bytes) {
    return absl::StrFormat("%-40s %12s\n", what, ToString(bytes));
  };
  std::string text = line("device", budget.device);
  for (const DeviceBudget::Item& item : budget.subtracted)
    text += line("- " + item.what, item.bytes);
  return text + line("= activations", budget.activations);
}

}  // namespace stowage
