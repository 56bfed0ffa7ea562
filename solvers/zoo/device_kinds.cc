#include "solvers/zoo/device_kinds.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace stowage {
namespace {

// Products in float32 reach most of a peak that is small, those of tensor cores little of a large one.
constexpr double kPlainShare = 0.9;
constexpr double kTensorShare = 0.35;
constexpr double kBandwidthShare = 0.85;
constexpr Nanos kKernel(5000);
constexpr Nanos kCopyLatency(10000);
constexpr Bytes kHostMemory(int64_t{256} << 30);

Bytes GiB(int64_t count) { return Bytes(count << 30); }

struct Figures {
  double tera_flops;
  bool tensor_cores;  // products in TF32
  double giga_bytes_per_second;
  int64_t memory_gib;
  double link_giga_bytes_per_second;
};

DeviceKind Gpu(const char* name, const char* product, const Figures& figures) {
  DeviceKind kind;
  kind.name = name;
  kind.description =
      absl::StrCat(product, figures.tensor_cores ? ", products in TF32" : ", products in float32");
  kind.model.name = product;
  kind.model.peak_flops_per_second = figures.tera_flops * 1e12;
  kind.model.peak_bytes_per_second = figures.giga_bytes_per_second * 1e9;
  kind.model.arithmetic_efficiency = figures.tensor_cores ? kTensorShare : kPlainShare;
  kind.model.bandwidth_efficiency = kBandwidthShare;
  kind.model.kernel_overhead = kKernel;
  kind.model.memory = GiB(figures.memory_gib);
  kind.host_link = {static_cast<int64_t>(figures.link_giga_bytes_per_second * 1e9), kCopyLatency};
  return kind;
}

// The one that the roofline was held against.
DeviceKind V100() {
  return {"v100", "V100 16 GB, products in float32", ModelledV100(),
          CopyCost{12'000'000'000, kCopyLatency}};
}

DeviceKind Cpu() {
  DeviceKind kind = Gpu("cpu", "CPU of 16 cores, 64 GB", {1, false, 100, 64, 50});
  kind.model.arithmetic_efficiency = 0.6;
  kind.model.kernel_overhead = Nanos(3000);
  return kind;
}

}  // namespace

const std::vector<DeviceKind>& AllDeviceKinds() {
  static const auto* const kKinds = new std::vector<DeviceKind>{
      Gpu("t4", "T4 16 GB", {8.1, false, 320, 16, 12}),
      V100(),
      Gpu("v100_32gb", "V100 32 GB", {14, false, 900, 32, 12}),
      Gpu("l4", "L4 24 GB", {60, true, 300, 24, 24}),
      Gpu("a10", "A10 24 GB", {62.5, true, 600, 24, 24}),
      Gpu("rtx3090", "RTX 3090 24 GB", {35.6, true, 936, 24, 24}),
      Gpu("rtx4090", "RTX 4090 24 GB", {82.6, true, 1008, 24, 24}),
      Gpu("l40s", "L40S 48 GB", {183, true, 864, 48, 24}),
      Gpu("a100", "A100 40 GB", {156, true, 1555, 40, 24}),
      Gpu("a100_80gb", "A100 80 GB", {156, true, 2039, 80, 24}),
      Gpu("h100", "H100 80 GB", {494, true, 3350, 80, 50}),
      Gpu("h200", "H200 141 GB", {494, true, 4800, 141, 50}),
      Cpu(),
  };
  return *kKinds;
}

Device DescribeKind(const DeviceKind& kind) {
  Device device = DescribeModel(kind.model);
  device.host_memory = kHostMemory;
  device.to_host_bytes_per_second = kind.host_link.bytes_per_second;
  device.to_device_bytes_per_second = kind.host_link.bytes_per_second;
  device.to_host_latency = kind.host_link.latency;
  device.to_device_latency = kind.host_link.latency;
  device.duplex = Duplex::kFull;
  return device;
}

absl::StatusOr<DeviceKind> FindDeviceKind(const std::string& name) {
  for (const DeviceKind& kind : AllDeviceKinds()) {
    if (kind.name == name) return kind;
  }
  const auto append_name = [](std::string* out, const DeviceKind& kind) { out->append(kind.name); };
  return absl::InvalidArgumentError(
      absl::StrCat("there is no kind of device '", name, "'; there are ",
                   absl::StrJoin(AllDeviceKinds(), ", ", append_name)));
}

}  // namespace stowage
