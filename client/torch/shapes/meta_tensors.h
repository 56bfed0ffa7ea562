// Tensors on the meta device that stand in for those of one operation's arguments, and the way back
// from what the operation made of them.
//
// What shares memory with an argument shares it after the way back; what is an argument is that one
// again, and numbers on the host stay there. Everything else becomes a tensor of the scope's device with the key kShapesKey, in
// ShapeMemory.
#ifndef STOWAGE_CLIENT_TORCH_SHAPES_META_TENSORS_H_
#define STOWAGE_CLIENT_TORCH_SHAPES_META_TENSORS_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <vector>

#include "client/torch/shapes/shape_memory.h"

namespace stowage {

// Functions throw c10::Error for what has no meta tensor: other devices (but for single numbers of the host), layouts and
// complex types.
class MetaTensors {
 public:
  // The memory outlives the object.
  MetaTensors(ShapeMemory* memory, c10::Device device) : memory_(memory), device_(device) {}

  // Of a tensor, a list of tensors, or a device; anything else is itself.
  c10::IValue ToMeta(const c10::IValue& argument);
  // Of a tensor or a list of tensors.
  c10::IValue FromMeta(const c10::IValue& result);

 private:
  struct Known {
    at::Tensor tensor;
    at::Tensor meta;
  };

  at::Tensor ToMeta(const at::Tensor& tensor);
  at::Tensor FromMeta(const at::Tensor& meta);
  // Whose storage it has; null if nobody's.
  const Known* OwnerOf(const at::Tensor& meta) const;

  ShapeMemory* memory_;
  c10::Device device_;
  std::vector<Known> known_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SHAPES_META_TENSORS_H_
