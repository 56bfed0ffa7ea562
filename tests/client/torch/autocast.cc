#include "tests/client/torch/autocast.h"

#include <ATen/Context.h>
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <c10/core/GradMode.h>

#include <exception>

#include "client/torch/base/torch_version.h"

namespace stowage {
namespace {

#if STOWAGE_AUTOCAST_BY_DEVICE
bool IsOn(c10::DeviceType device) { return at::autocast::is_autocast_enabled(device); }
void Set(c10::DeviceType device, bool on) {
  at::autocast::set_autocast_enabled(device, on);
  at::autocast::set_autocast_dtype(device, at::kBFloat16);
}
#else
bool IsOn(c10::DeviceType device) {
  return device == at::kCPU ? at::autocast::is_cpu_enabled() : at::autocast::is_enabled();
}
void Set(c10::DeviceType device, bool on) {
  if (device == at::kCPU) {
    at::autocast::set_cpu_enabled(on);
    at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
  } else {
    at::autocast::set_enabled(on);
    at::autocast::set_autocast_gpu_dtype(at::kBFloat16);
  }
}
#endif

bool CanConvolveInBfloat16() {
  const c10::NoGradGuard no_grad;
  const at::Tensor image = at::ones({1, 1, 4, 4}, at::kBFloat16);
  try {
    at::conv2d(image, at::ones({1, 1, 3, 3}, at::kBFloat16));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool left_out = false;

}  // namespace

void LeaveOutOneDnnWhereItHasNoBfloat16() {
  static const bool has = CanConvolveInBfloat16();
  if (has) return;
  at::globalContext().setUserEnabledMkldnn(false);
  left_out = true;
}

void UseOneDnnAgain() {
  if (left_out) at::globalContext().setUserEnabledMkldnn(true);
  left_out = false;
}

ScopedAutocast::ScopedAutocast(bool on, bool remember_casts, c10::DeviceType device)
    : device_(device),
      was_on_(IsOn(device)),
      remembered_(at::autocast::is_autocast_cache_enabled()) {
  if (on && device != c10::DeviceType::CUDA) LeaveOutOneDnnWhereItHasNoBfloat16();
  Set(device_, on);
  at::autocast::set_autocast_cache_enabled(remember_casts);
}

ScopedAutocast::~ScopedAutocast() {
  at::autocast::clear_cache();
  at::autocast::set_autocast_cache_enabled(remembered_);
  Set(device_, was_on_);
}

}  // namespace stowage
