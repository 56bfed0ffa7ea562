// The gradients of a model's parameters in one step, whose parts (stages, nodes) run backward one by
// one.
//
// A parameter of several parts (tied weights) gets one sum over its uses, one by one in the order of
// the backwards, and that is accumulated after the last of them: .grad becomes what plain training
// makes of it, and hooks on the parameter and on its gradient accumulator run once. Until then the sum
// is kept here, in memory that is allocated at the beginning: like the gradients it is none of the
// activations'. (Plain training under autocast that remembers casts sums up in the type of the cast.)
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_PARAMETER_GRADIENTS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_PARAMETER_GRADIENTS_H_

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

namespace stowage {

// Told of a trainable parameter when its gradient is complete: once in every backward of a model, in
// the order in which that comes to them, also when nothing flows back to it.
using OnGradientReady = std::function<void(const at::Tensor& parameter)>;

// Tells of parameters where the caller's own graph adds up their gradients. Functions throw what `ready` throws. Not
// thread-safe.
class CompleteGradients {
 public:
  // As those of ParameterGradients; nothing is kept where there is nobody to tell.
  CompleteGradients(const std::vector<std::vector<at::Tensor>>& parts, OnGradientReady ready);
  // The backward of a part is done: to be called once for each, in the order of the backwards.
  void Finish(int part);

 private:
  struct Trained {
    at::Tensor parameter;
    int parts_left = 0;
  };

  std::vector<Trained> trained_;
  std::vector<std::vector<int>> uses_;  // by part, indices into trained_
  OnGradientReady ready_;
};

// Functions throw what LibTorch and `ready` throw. Not thread-safe: nobody else may build graphs on
// the same parameters meanwhile.
class ParameterGradients {
 public:
  // `parts` has the parameters of each part. `ready` may be empty.
  ParameterGradients(const std::vector<std::vector<at::Tensor>>& parts, OnGradientReady ready);
  ParameterGradients(ParameterGradients&&) noexcept;
  ~ParameterGradients();

  // To be held while a part runs forward with a graph.
  class Recording {
   public:
    Recording(ParameterGradients* gradients, int part);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    const std::vector<int>& uses_;
    ParameterGradients* gradients_;
  };

  // Uses up the graphs of a part, on its outputs; with an undefined gradient a scalar starts with 1.
  void Backward(int part, std::vector<at::Tensor> outputs, std::vector<at::Tensor> gradients);
  // The backward of a part is done: to be called once for each, in the order of the backwards.
  void Finish(int part);

 private:
  class GradientSum;
  struct Trained;

  std::vector<std::unique_ptr<Trained>> trained_;
  std::vector<std::vector<int>> uses_;  // by part, indices into trained_
  OnGradientReady ready_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_PARAMETER_GRADIENTS_H_
