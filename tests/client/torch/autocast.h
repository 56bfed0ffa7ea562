// Autocast on the CPU as a user turns it on around what he trains.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_AUTOCAST_H_
#define STOWAGE_TESTS_CLIENT_TORCH_AUTOCAST_H_

namespace stowage {

// bfloat16, if `on`; as it was before at the end. But for oneDNN: where it is told of an older processor than
// LibTorch sees, and has no bfloat16, it is left out until UseOneDnnAgain, for backwards are run after the scope.
class ScopedAutocast {
 public:
  explicit ScopedAutocast(bool on, bool remember_casts = true);
  ~ScopedAutocast();
  ScopedAutocast(const ScopedAutocast&) = delete;
  ScopedAutocast& operator=(const ScopedAutocast&) = delete;

 private:
  const bool was_on_;
  const bool remembered_;
};

// As before the first scope. test_main.cc does so after each test.
void UseOneDnnAgain();

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_AUTOCAST_H_
