#include "client/torch/profile/device_description.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/model/autocast_state.h"

namespace stowage {
namespace {

// LibTorch refuses to say where a program has set one thing in two ways.
template <class Ask>
std::string Setting(const Ask& ask) {
  try {
    return absl::StrCat(static_cast<int>(ask()));
  } catch (const c10::Error&) {
    return "mixed";
  }
}

std::string CpuSettings(const at::Context& context) {
  return absl::StrCat("threads=", at::get_num_threads(),
                      " deterministic=", context.deterministicAlgorithms() ? 1 : 0,
                      " mkldnn=", context.userEnabledMkldnn() ? 1 : 0);
}

std::string GpuSettings(const at::Context& context) {
  return absl::StrCat(
      "deterministic=", context.deterministicAlgorithms() ? 1 : 0,
      " tf32_matmul=", Setting([&] { return context.allowTF32CuBLAS(); }),
      " tf32_cudnn=", Setting([&] { return context.allowTF32CuDNN(); }),
      " fp16_reduction=", Setting([&] { return context.allowFP16ReductionCuBLAS(); }),
      " cudnn=", context.userEnabledCuDNN() ? 1 : 0,
      " cudnn_benchmark=", context.benchmarkCuDNN() ? 1 : 0,
      " cudnn_deterministic=", context.deterministicCuDNN() ? 1 : 0);
}

}  // namespace

Device DescribeDevice(const ExecutionDevice* device) {
  const at::Context& context = at::globalContext();
  const bool cpu = device == nullptr || device->device().is_cpu();
  Device described = device == nullptr ? CpuHardware() : device->Hardware();
  described.framework = absl::StrCat("libtorch ", TORCH_VERSION);
  described.math_settings = cpu ? CpuSettings(context) : GpuSettings(context);
  const AutocastState autocast = AutocastState::Capture();
  if (autocast.enabled()) {
    absl::StrAppend(&described.math_settings, " autocast=", autocast.ToString());
  }
  return described;
}

}  // namespace stowage
