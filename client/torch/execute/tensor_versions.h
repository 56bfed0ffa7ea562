// Whether tensors that a planned step reads in its forward and again in its backward were written over in between.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_TENSOR_VERSIONS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_TENSOR_VERSIONS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stowage {

// By autograd's counters. Holds none of the tensors. Not thread-safe.
class TensorVersions {
 public:
  // Errors name them by `what` and their number. Undefined ones are not looked at.
  TensorVersions(std::string what, const std::vector<at::Tensor>& tensors);
  // Throws c10::Error if one was written over since the construction.
  void CheckUnchanged() const;

 private:
  struct Version {
    c10::VariableVersion counter;
    uint32_t then;
  };

  std::string what_;
  std::vector<Version> versions_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_TENSOR_VERSIONS_H_
