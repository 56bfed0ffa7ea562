#include "tests/client/torch/autocast.h"

#include <ATen/autocast_mode.h>

#include "client/torch/torch_version.h"

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

}  // namespace

ScopedAutocast::ScopedAutocast(bool on, bool remember_casts)
    : was_on_(IsOn()), remembered_(at::autocast::is_autocast_cache_enabled()) {
  Set(on);
  at::autocast::set_autocast_cache_enabled(remember_casts);
}

ScopedAutocast::~ScopedAutocast() {
  at::autocast::clear_cache();
  at::autocast::set_autocast_cache_enabled(remembered_);
  Set(was_on_);
}

}  // namespace stowage
