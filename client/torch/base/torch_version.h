// The differences between the LibTorch versions that Stowage builds against (1.13 to 2.x), in one
// place.
#ifndef STOWAGE_CLIENT_TORCH_BASE_TORCH_VERSION_H_
#define STOWAGE_CLIENT_TORCH_BASE_TORCH_VERSION_H_

#include <torch/csrc/api/include/torch/version.h>

#define STOWAGE_TORCH_AT_LEAST(major, minor) \
  (TORCH_VERSION_MAJOR > (major) ||          \
   (TORCH_VERSION_MAJOR == (major) && TORCH_VERSION_MINOR >= (minor)))

// Since 2.3 c10::Allocator::allocate is not const, and copy_data is pure virtual.
#if STOWAGE_TORCH_AT_LEAST(2, 3)
#define STOWAGE_ALLOCATE_CONST
#define STOWAGE_ALLOCATOR_COPIES 1
#else
#define STOWAGE_ALLOCATE_CONST const
#define STOWAGE_ALLOCATOR_COPIES 0
#endif

// Since 2.4 at::autocast asks for the device type; what it had for each device before is deprecated.
#define STOWAGE_AUTOCAST_BY_DEVICE STOWAGE_TORCH_AT_LEAST(2, 4)

// at::Context initialises any kind of device by one function; what it had for each before is deprecated.
#define STOWAGE_LAZY_INIT_BY_DEVICE STOWAGE_TORCH_AT_LEAST(2, 7)

#endif  // STOWAGE_CLIENT_TORCH_BASE_TORCH_VERSION_H_
