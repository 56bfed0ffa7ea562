// LibTorch's deterministic mode, in which steps on a GPU are equal bit for bit.
#ifndef STOWAGE_CLIENT_CLI_DETERMINISTIC_MODE_H_
#define STOWAGE_CLIENT_CLI_DETERMINISTIC_MODE_H_

#include <c10/core/Device.h>

#include <functional>

#include "absl/status/status.h"

namespace stowage {

// From now on, for the whole process: cuDNN's kernels are deterministic, and an operation without a deterministic kernel
// fails. Runs `first`, which runs every operation; where one of them fails for that reason, such operations only warn from
// then on, a line says so, and `first` runs once more. The mode is more than what fails: with warnings alone attention adds
// up in any order. Sets CUBLAS_WORKSPACE_CONFIG, without which LibTorch refuses cuBLAS, unless it is set: nothing may have called
// cuBLAS before. On the CPU it only runs `first`.
absl::Status BeDeterministic(c10::Device device, const std::function<absl::Status()>& first);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_DETERMINISTIC_MODE_H_
