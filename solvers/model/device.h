// The device a profile belongs to and its link to host memory. See proto/stowage/v1/device.proto
// for the classes of the fields (environment, reference cost, label).
#ifndef STOWAGE_SOLVERS_MODEL_DEVICE_H_
#define STOWAGE_SOLVERS_MODEL_DEVICE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "solvers/model/units.h"

namespace stowage {

enum class Duplex { kUnspecified, kHalf, kFull };

struct Device {
  std::string model;
  std::string framework;
  std::string math_settings;
  Bytes allocation_granularity{1};
  int32_t bandwidth_class = 0;  // coarse ratio of transfer to compute, [0, 63]; 0: not stated
  Duplex duplex = Duplex::kUnspecified;
  Bytes host_memory;
  int64_t to_host_bytes_per_second = 0;
  int64_t to_device_bytes_per_second = 0;
  Nanos to_host_latency;
  Nanos to_device_latency;
  Bytes memory;
};

// OK, or INVALID_ARGUMENT made by FieldError with names below "device.".
absl::Status ValidateDevice(const Device& device);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_DEVICE_H_
