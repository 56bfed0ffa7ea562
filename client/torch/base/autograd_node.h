// How nodes of autograd's graph are held: by std::shared_ptr until LibTorch 2.11, by c10::intrusive_ptr in 2.15.
#ifndef STOWAGE_CLIENT_TORCH_BASE_AUTOGRAD_NODE_H_
#define STOWAGE_CLIENT_TORCH_BASE_AUTOGRAD_NODE_H_

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <type_traits>
#include <utility>

namespace stowage {

using NodePtr = decltype(torch::autograd::Edge::function);

inline constexpr bool kNodesAreShared =
    std::is_same_v<NodePtr, std::shared_ptr<torch::autograd::Node>>;

template <typename T>
using NodePtrTo = std::conditional_t<kNodesAreShared, std::shared_ptr<T>, c10::intrusive_ptr<T>>;

// Of long graphs nodes are freed one by one, not each by the one before it.
template <typename T, typename... Args>
NodePtrTo<T> MakeNode(Args&&... args) {
  if constexpr (kNodesAreShared) {
    return NodePtrTo<T>(new T(std::forward<Args>(args)...), [](T* node) { deleteNode(node); });
  } else {
    return c10::make_intrusive<T>(std::forward<Args>(args)...);
  }
}

template <typename T>
auto WeakNode(const std::shared_ptr<T>& node) {
  return std::weak_ptr<torch::autograd::Node>(node);
}
template <typename T>
auto WeakNode(const c10::intrusive_ptr<T>& node) {
  return c10::weak_intrusive_ptr<torch::autograd::Node>(NodePtr(node));
}

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_BASE_AUTOGRAD_NODE_H_
