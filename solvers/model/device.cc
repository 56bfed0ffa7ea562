#include "solvers/model/device.h"

#include "solvers/model/field_error.h"

namespace stowage {

absl::Status ValidateDevice(const Device& device) {
  static constexpr size_t kMaxSettingsLength = 1024;
  static constexpr int32_t kMaxBandwidthClass = 63;
  FieldChecks checks("device.");
  checks.MaxLength("model", device.model);
  checks.MaxLength("framework", device.framework);
  checks.MaxLength("math_settings", device.math_settings, kMaxSettingsLength);
  checks.NonNegative("allocation_granularity_bytes", device.allocation_granularity.value());
  checks.NonNegative("host_memory_bytes", device.host_memory.value());
  checks.NonNegative("to_host_bytes_per_second", device.to_host_bytes_per_second);
  checks.NonNegative("to_device_bytes_per_second", device.to_device_bytes_per_second);
  checks.NonNegative("to_host_latency_ns", device.to_host_latency.value());
  checks.NonNegative("to_device_latency_ns", device.to_device_latency.value());
  checks.NonNegative("memory_bytes", device.memory.value());
  if (!checks.status().ok()) return checks.status();
  if (device.bandwidth_class < 0 || device.bandwidth_class > kMaxBandwidthClass) {
    return FieldError("device.bandwidth_class", device.bandwidth_class,
                      absl::StrCat("must be in [0, ", kMaxBandwidthClass, "]"));
  }
  return absl::OkStatus();
}

}  // namespace stowage
