// Autocast as a user turns it on around what he trains.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_AUTOCAST_H_
#define STOWAGE_TESTS_CLIENT_TORCH_AUTOCAST_H_

#include <c10/core/DeviceType.h>

namespace stowage {

// bfloat16, if `on`; as it was before at the end. But for oneDNN: see below.
class ScopedAutocast {
 public:
  // Of the CPU, CUDA or the test device.
  explicit ScopedAutocast(bool on, bool remember_casts = true,
                          c10::DeviceType device = c10::DeviceType::CPU);
  ~ScopedAutocast();
  ScopedAutocast(const ScopedAutocast&) = delete;
  ScopedAutocast& operator=(const ScopedAutocast&) = delete;

 private:
  const c10::DeviceType device_;
  const bool was_on_;
  const bool remembered_;
};

// Where oneDNN is told of an older processor it may have no bfloat16; LibTorch, which looks at the processor itself,
// asks it all the same. On an older one it would not. There oneDNN is left out until UseOneDnnAgain: backwards run
// after the scope, too.
void LeaveOutOneDnnWhereItHasNoBfloat16();

// As before LeaveOutOneDnnWhereItHasNoBfloat16. test_main.cc does so after each test.
void UseOneDnnAgain();

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_AUTOCAST_H_
