// Tensors on the meta device that stand in for those of one operation's arguments, and the way back
// from what the operation made of them.
//
// What shares memory with an argument shares it after the way back; what is an argument is that one
// again. Everything else becomes a tensor of the scope's device with the key kShapesKey, in ShapeMemory.
#ifndef STOWAGE_CLIENT_TORCH_SHAPES_STAND_INS_H_
#define STOWAGE_CLIENT_TORCH_SHAPES_STAND_INS_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <vector>

#include "client/torch/shapes/shape_memory.h"

namespace stowage {

// Functions throw c10::Error for what has no stand-in: other devices (but for single numbers of the host), layouts and
// complex types.
class StandIns {
 public:
  // The memory outlives the object.
  StandIns(ShapeMemory* memory, c10::Device device) : memory_(memory), device_(device) {}

  // Of a tensor, a list of tensors, or a device; anything else is itself.
  c10::IValue For(const c10::IValue& argument);
  // Of a tensor or a list of tensors.
  c10::IValue Back(const c10::IValue& result);

 private:
  struct Known {
    at::Tensor tensor;
    at::Tensor stand_in;
  };

  at::Tensor For(const at::Tensor& tensor);
  at::Tensor Back(const at::Tensor& stand_in);
  // Whose storage it has; null if nobody's.
  const Known* OwnerOf(const at::Tensor& stand_in) const;

  ShapeMemory* memory_;
  c10::Device device_;
  std::vector<Known> known_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_SHAPES_STAND_INS_H_
