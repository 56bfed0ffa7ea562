// How often the host waits for a device.
#ifndef STOWAGE_TESTS_CLIENT_DEVICE_WAIT_COUNT_H_
#define STOWAGE_TESTS_CLIENT_DEVICE_WAIT_COUNT_H_

#include <c10/core/Device.h>

#include <cstdint>
#include <memory>

namespace stowage {

// While an object lives: of the test device all waits, of a GPU the calls of LibTorch that synchronize, as it warns of them
// (there is one such object then); of the CPU none. Not thread-safe.
class WaitCount {
 public:
  explicit WaitCount(c10::Device device);
  ~WaitCount();
  WaitCount(const WaitCount&) = delete;
  WaitCount& operator=(const WaitCount&) = delete;

  int64_t count() const;

 private:
  class Warnings;

  const c10::Device device_;
  const int64_t before_;
  const std::unique_ptr<Warnings> warnings_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_DEVICE_WAIT_COUNT_H_
