// Autocast for the test device: casts as CUDA's.
#ifndef STOWAGE_TESTS_CLIENT_DEVICE_DEVICE_CASTS_H_
#define STOWAGE_TESTS_CLIENT_DEVICE_DEVICE_CASTS_H_

namespace stowage {

// Once in a process. False, and nothing done, where LibTorch has no lists of what casts, as 2.x has.
bool RegisterTestDeviceCasts();

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_DEVICE_DEVICE_CASTS_H_
