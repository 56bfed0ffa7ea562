// How the rest of the torch part keeps out of a ShapeScope.
#ifndef STOWAGE_CLIENT_TORCH_BASE_REAL_OPERATIONS_H_
#define STOWAGE_CLIENT_TORCH_BASE_REAL_OPERATIONS_H_

#include <c10/core/DispatchKey.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace stowage {

// The key of tensors that are shapes alone (client/torch/shapes/shape_scope.h). LibTorch reserves it, below autograd
// and autocast, for tensors that only look real, and has no kernels for it.
inline constexpr c10::DispatchKey kShapesKey = c10::DispatchKey::Fake;

// While it lives this thread's operations run for real, also within a scope: on real tensors only.
class RealOperations {
 private:
  const c10::impl::ExcludeDispatchKeyGuard exclude_{kShapesKey};
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_BASE_REAL_OPERATIONS_H_
