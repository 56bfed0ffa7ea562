#ifndef STOWAGE_CLIENT_TORCH_BASE_RETHROW_AS_THROWN_H_
#define STOWAGE_CLIENT_TORCH_BASE_RETHROW_AS_THROWN_H_

namespace stowage {

// While it lives, exceptions leave TorchScript's interpreter as they were thrown: out of memory must not
// become an error of unknown kind. The switch is the process's: the last of several, whatever thread they
// are on, puts it back. Thread-safe.
class RethrowAsThrown {
 public:
  RethrowAsThrown();
  ~RethrowAsThrown();
  RethrowAsThrown(const RethrowAsThrown&) = delete;
  RethrowAsThrown& operator=(const RethrowAsThrown&) = delete;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_BASE_RETHROW_AS_THROWN_H_
