// Which threads of this process step on a device: where its meter counts for all of them, what one of them
// holds cannot be told from what another does.
#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_DEVICE_USE_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_DEVICE_USE_H_

#include <c10/core/Device.h>

#include <cstdint>

namespace stowage {

// The host waits for what it gave the device's current stream to do. Throws what LibTorch throws.
void WaitFor(c10::Device device);
// Waits until autograd's thread for the device has let go of the backwards that have ended: it does so after the caller goes
// on. Not for use in a backward. Throws what LibTorch throws.
void WaitForBackwards(c10::Device device);

// The calling thread steps on the device while an object lives, one in another on that thread is no more. Objects of a
// thread go in the reverse order of their making.
class DeviceUse {
 public:
  explicit DeviceUse(c10::Device device);
  ~DeviceUse();
  DeviceUse(const DeviceUse&) = delete;
  DeviceUse& operator=(const DeviceUse&) = delete;

 private:
  bool IsWithinAnother() const;

  const c10::Device device_;
  const DeviceUse* const outer_;  // of this thread, of any device
  const bool counts_;
};

// Whether others do. To be made by a thread that steps.
class DeviceWatch {
 public:
  explicit DeviceWatch(c10::Device device);

  // At any time since this object was made.
  bool SawOthers() const;

 private:
  const c10::Device device_;
  int64_t begun_;
  bool others_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_DEVICE_USE_H_
