// LibTorch's deterministic mode, in which steps on a GPU are equal bit for bit.
#ifndef STOWAGE_CLIENT_CLI_DETERMINISTIC_MODE_H_
#define STOWAGE_CLIENT_CLI_DETERMINISTIC_MODE_H_

#include <c10/core/Device.h>

#include <functional>

#include "absl/status/status.h"

namespace stowage {

// UseDeterministicKernels, and then runs `first`, which runs every operation. Where one of them has no deterministic kernel, such
// operations only warn from then on, a line says so, and `first` runs once more. On the CPU it only runs `first`.
absl::Status BeDeterministic(c10::Device device, const std::function<absl::Status()>& first);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_DETERMINISTIC_MODE_H_
