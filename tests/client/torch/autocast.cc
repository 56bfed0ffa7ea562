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
bool IsOn() { return at::autocast::is_autocast_enabled(at::kCPU); }
void Set(bool on) {
  at::autocast::set_autocast_enabled(at::kCPU, on);
  at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
}
#else
bool IsOn() { return at::autocast::is_cpu_enabled(); }
void Set(bool on) {
  at::autocast::set_cpu_enabled(on);
  at::autocast::set_autocast_cpu_dtype(at::kBFloat16);
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

ScopedAutocast::ScopedAutocast(bool on, bool remember_casts)
    : was_on_(IsOn()), remembered_(at::autocast::is_autocast_cache_enabled()) {
  if (on) LeaveOutOneDnnWhereItHasNoBfloat16();
  Set(on);
  at::autocast::set_autocast_cache_enabled(remember_casts);
}

ScopedAutocast::~ScopedAutocast() {
  at::autocast::clear_cache();
  at::autocast::set_autocast_cache_enabled(remembered_);
  Set(was_on_);
}

}  // namespace stowage
