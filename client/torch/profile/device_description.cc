#include "client/torch/profile/device_description.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <cstddef>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_version.h"
#include "client/torch/model/autocast_state.h"
#include "solvers/model/digest.h"

namespace stowage {
namespace {

// Of how costs are measured: profiles of another one are not taken for today's. 1: forwards that do not save ran without
// grad mode; 2: with it, as recomputes do, by the kernels that a forward with a graph takes.
constexpr int kCostsVersion = 2;

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

// Which kernels of scaled dot-product attention may be taken: they save tensors of other sizes.
std::string AttentionSettings(const at::Context& context) {
  std::string kernels = context.userEnabledFlashSDP() ? "flash," : "";
  if (context.userEnabledMathSDP()) kernels += "math,";
#if STOWAGE_TORCH_AT_LEAST(2, 7)
  if (context.userEnabledMemEfficientSDP()) kernels += "efficient,";
  if (context.userEnabledCuDNNSDP()) kernels += "cudnn,";
  if (context.allowFP16BF16ReductionMathSDP()) kernels += "reduced,";
#endif
  return absl::StrCat(" sdp=", kernels);
}

// It decides how large blocks are. What a program sets otherwise, LibTorch does not tell.
std::string AllocatorSettings() {
  constexpr size_t kLongest = 128;
  std::string text;
  for (const char* const name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string said = value;
    absl::StrAppend(&text, " ", name, "=", said.size() <= kLongest ? said : Sha256(said).ToHex());
  }
  return text;
}

std::string GpuSettings(const at::Context& context) {
  std::string text =
      absl::StrCat("deterministic=", context.deterministicAlgorithms() ? 1 : 0,
                   " tf32_matmul=", Setting([&] { return context.allowTF32CuBLAS(); }),
                   " tf32_cudnn=", Setting([&] { return context.allowTF32CuDNN(); }),
                   " fp16_reduction=", Setting([&] { return context.allowFP16ReductionCuBLAS(); }),
                   " cudnn=", context.userEnabledCuDNN() ? 1 : 0,
                   " cudnn_benchmark=", context.benchmarkCuDNN() ? 1 : 0,
                   " cudnn_deterministic=", context.deterministicCuDNN() ? 1 : 0);
#if STOWAGE_TORCH_AT_LEAST(2, 7)
  absl::StrAppend(&text,
                  " bf16_reduction=", Setting([&] { return context.allowBF16ReductionCuBLAS(); }),
                  " fp16_accumulation=", context.allowFP16AccumulationCuBLAS() ? 1 : 0);
#endif
  return absl::StrCat(text, AttentionSettings(context), AllocatorSettings());
}

std::string Software(const ExecutionDevice& device) {
  std::string text;
  for (const DeviceSetting& setting : device.Software()) {
    absl::StrAppend(&text, " ", setting.name, "=", setting.value);
  }
  return text;
}

}  // namespace

Device DescribeDevice(const ExecutionDevice* device) {
  const at::Context& context = at::globalContext();
  const bool cpu = device == nullptr || device->device().is_cpu();
  Device described = device == nullptr ? CpuHardware() : device->Hardware();
  described.framework = absl::StrCat("libtorch ", TORCH_VERSION);
  described.math_settings = cpu ? CpuSettings(context) : GpuSettings(context);
  if (device != nullptr) described.math_settings += Software(*device);
  absl::StrAppend(&described.math_settings, " costs=", kCostsVersion);
  const AutocastState autocast = AutocastState::Capture();
  if (autocast.enabled()) {
    absl::StrAppend(&described.math_settings, " autocast=", autocast.ToString());
  }
  return described;
}

}  // namespace stowage
