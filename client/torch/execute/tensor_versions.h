// Whether tensors that a planned step reads in its forward and again in its backward were written over in between.
#ifndef STOWAGE_CLIENT_TORCH_EXECUTE_TENSOR_VERSIONS_H_
#define STOWAGE_CLIENT_TORCH_EXECUTE_TENSOR_VERSIONS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/TensorImpl.h>

#include <cstddef>
#include <cstdint>
#include <optional>
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
  // The same of some of them, by their number.
  void CheckUnchanged(const std::vector<size_t>& numbers) const;

 private:
  struct Version {
    c10::VariableVersion counter;
    uint32_t then;
  };

  void Check(size_t number) const;

  std::string what_;
  std::vector<std::optional<Version>> versions_;  // nothing of undefined ones
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_EXECUTE_TENSOR_VERSIONS_H_
