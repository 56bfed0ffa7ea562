// How operations of LibTorch run on the test device.
#ifndef STOWAGE_TESTS_CLIENT_DEVICE_DEVICE_OPS_H_
#define STOWAGE_TESTS_CLIENT_DEVICE_DEVICE_OPS_H_

#include <ATen/core/Generator.h>
#include <c10/core/Allocator.h>

#include <cstddef>

namespace stowage {

// Once in a process.
void RegisterTestDeviceOps();

// What they ask of the device. The host waits for it, and that is counted.
void WaitForTestDevice();
// TestDevice::host_copies.
void CountHostCopy();
// Throws c10::OutOfMemoryError.
c10::DataPtr AllocateOnTestDevice(size_t bytes);
// The next numbers of a generator of the device, as a generator of the CPU.
at::Generator NextNumbers(const at::Generator& generator);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_DEVICE_DEVICE_OPS_H_
