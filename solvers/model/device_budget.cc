#include "solvers/model/device_budget.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/model/field_error.h"

namespace stowage {
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
