#include "client/torch/profile/profile_passes.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/torch/execute/run_backward.h"
#include "client/torch/memory/host_memory.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/offload/describe_link.h"
#include "client/torch/profile/device_description.h"
#include "client/torch/profile/transfer_meter.h"

namespace stowage {
namespace {

// One or two say nothing about how far they can be trusted.
constexpr int kLeastSteps = 3;

std::string WhyNoSteps(const ProfileOptions& options, const std::vector<at::Tensor>& inputs) {
  if (!options.calibrate) return "not asked for";
  if (options.bytes_only) return "only bytes were measured";
  if (options.repeats < kLeastSteps) {
    return absl::StrCat("takes ", kLeastSteps, " passes at least");
  }
  for (const at::Tensor& input : inputs) {
    if (input.requires_grad()) return "the input needs a gradient, which a step does not make";
  }
  return "";
}

// On a device with threads and libraries of its own.
bool ComputesElsewhere(const ProfileOptions& options) {
  return !options.shapes_only && options.device != nullptr && !options.device->device().is_cpu();
}

}  // namespace

absl::Status CheckPasses(const ProfileOptions& options, const std::vector<at::Tensor>& inputs) {
  if (options.warmup < 0 || options.repeats < 1) {
    return absl::InvalidArgumentError(absl::StrCat("warmup must be >= 0 and repeats >= 1, not ",
                                                   options.warmup, " and ", options.repeats));
  }
  if (options.transfers && options.device == nullptr) {
    return absl::InvalidArgumentError("transfers are measured on a device, and none is given");
  }
  const c10::Device device =
      options.device == nullptr ? c10::Device(c10::DeviceType::CPU) : options.device->device();
  for (const at::Tensor& input : inputs) {
    if (input.device() == device) continue;
    return absl::InvalidArgumentError(absl::StrCat("an input is on ", input.device().str(),
                                                   ", the device to profile on is ", device.str()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ProfileMeters> MakeProfileMeters(const ProfileOptions& options) {
  if (options.device != nullptr)
    return ProfileMeters{options.device->meter(), options.device->MakeTimer(),
                         options.device->granularity()};
  absl::StatusOr<MemoryMeter*> meter = MeterOrInstalled(options.meter);
  if (!meter.ok()) return meter.status();
  return ProfileMeters{*meter, MakeSteadyTimer(), Bytes(1)};
}

int WarmupOf(const ProfileOptions& options) {
  return std::max(options.warmup, ComputesElsewhere(options) ? 1 : 0);
}

void WarmUpBackwardsThread(const ProfileOptions& options, const std::function<void()>& pass) {
  if (!ComputesElsewhere(options)) return;
  RunOnBackwardsThread(options.device->device(), pass);
}

bool WatchesEveryPass(const ProfileOptions& options) {
  return options.device == nullptr || options.device->device().is_cpu();
}

absl::StatusOr<Device> ProfiledDevice(const ProfileOptions& options) {
  Device device = DescribeDevice(options.device);
  if (!options.transfers) return device;
  absl::StatusOr<MeasuredTransfers> measured = MeasureTransfers(options.device);
  if (!measured.ok()) return measured.status();
  DescribeLink(measured->model, &device);
  if (options.report != nullptr) options.report->transfers = *std::move(measured);
  return device;
}

Bytes FreeMemoryOf(const ExecutionDevice* device) {
  if (device == nullptr) return FreeHostMemory();
  const std::optional<Bytes> free = device->FreeMemory();
  if (free) return *free;
  return device->device().is_cpu() ? FreeHostMemory() : Bytes(kMaxTotal);
}

absl::Status CheckGradientRoom(const ModelTensors& model, const ExecutionDevice* device) {
  const int64_t unit = device == nullptr ? 1 : device->granularity().value();
  Bytes gradients;
  for (const at::Tensor& parameter : model.parameters()) {
    if (!parameter.requires_grad()) continue;
    const auto bytes = static_cast<int64_t>(parameter.nbytes());
    gradients += Bytes((bytes + unit - 1) / unit * unit);
  }
  const Bytes free = FreeMemoryOf(device);
  if (gradients <= free) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a profile makes gradients of its own, which take ", ToString(gradients),
                   ", and ", ToString(free), " of memory are free"));
}

UnusedMemory::~UnusedMemory() {
  if (device_ == nullptr) return;
  try {
    device_->GiveBackUnused();
  } catch (...) {
    // A device that fails says so at whatever is done there next.
  }
}

WholeSteps MakeWholeSteps(const ProfileOptions& options, const std::vector<at::Tensor>& inputs) {
  std::string why_not = WhyNoSteps(options, inputs);
  if (!why_not.empty()) return WholeSteps(std::move(why_not));
  return WholeSteps(FreeMemoryOf(options.device));
}

}  // namespace stowage
