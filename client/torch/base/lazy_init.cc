#include "client/torch/base/lazy_init.h"

#include <ATen/Context.h>

#include "client/torch/base/torch_version.h"

namespace stowage {

void InitialiseLazily(c10::DeviceType type) {
#if STOWAGE_LAZY_INIT_BY_DEVICE
  at::globalContext().lazyInitDevice(type);
#else
  if (type == c10::DeviceType::CUDA) at::globalContext().lazyInitCUDA();
#endif
}

}  // namespace stowage
