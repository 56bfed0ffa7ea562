#include "solvers/model/transfer_model.h"

#include <algorithm>
#include <string>

#include "absl/numeric/int128.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

absl::Status CheckCost(const std::string& prefix, const CopyCost& cost) {
  if (cost.bytes_per_second <= 0) {
    return FieldError(prefix + "bytes_per_second", cost.bytes_per_second, "must be > 0");
  }
  FieldChecks checks(prefix);
  checks.NonNegative("latency_ns", cost.latency.value());
  return checks.status();
}

}  // namespace

absl::Status ValidateTransferModel(const TransferModel& transfers) {
  absl::Status status = CheckCost("transfers.to_host.", transfers.to_host);
  if (status.ok()) status = CheckCost("transfers.to_device.", transfers.to_device);
  if (!status.ok()) return status;
  FieldChecks checks("transfers.");
  checks.NonNegative("host_memory_bytes", transfers.host_memory.value());
  return checks.status();
}

std::optional<TransferModel> TransfersOf(const Device& device) {
  if (device.to_host_bytes_per_second == 0 || device.to_device_bytes_per_second == 0 ||
      device.host_memory == Bytes(0)) {
    return std::nullopt;
  }
  TransferModel transfers;
  transfers.to_host = {device.to_host_bytes_per_second, device.to_host_latency};
  transfers.to_device = {device.to_device_bytes_per_second, device.to_device_latency};
  transfers.full_duplex = device.duplex == Duplex::kFull;
  transfers.host_memory = device.host_memory;
  return transfers;
}

int32_t BandwidthClassOf(const TransferModel& transfers) {
  static constexpr int32_t kMiddleClass = 128;
  static constexpr double kMiddle = 12e9, kSquareRootOfTwo = 1.4142135623730951;
  // Halving and doubling are exact, so every machine finds the same class.
  double speed = static_cast<double>(
      std::min(transfers.to_host.bytes_per_second, transfers.to_device.bytes_per_second));
  int32_t exponent = 0;
  for (; speed >= kMiddle * kSquareRootOfTwo; speed /= 2) ++exponent;
  for (; speed < kMiddle / kSquareRootOfTwo; speed *= 2) --exponent;
  return kMiddleClass + exponent;
}

Nanos CopyTime(const CopyCost& cost, Bytes bytes) {
  const absl::int128 bandwidth = cost.bytes_per_second;
  const absl::int128 copying =
      (absl::int128(bytes.value()) * kNanosPerSecond + bandwidth - 1) / bandwidth;
  const absl::int128 time = copying + cost.latency.value();
  return Nanos(static_cast<int64_t>(std::min(time, absl::int128(kMaxTotal))));
}

}  // namespace stowage
