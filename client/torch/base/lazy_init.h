#ifndef STOWAGE_CLIENT_TORCH_BASE_LAZY_INIT_H_
#define STOWAGE_CLIENT_TORCH_BASE_LAZY_INIT_H_

#include <c10/core/Device.h>

namespace stowage {

// Lets LibTorch initialise a kind of device, as its first tensor there would: before, the allocator of CUDA serves nobody.
// Does nothing where that is done, and for the CPU. Before 2.7 LibTorch has no such step for devices that are not its
// own. Throws what LibTorch throws. Thread-safe.
void InitialiseLazily(c10::DeviceType type);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_BASE_LAZY_INIT_H_
