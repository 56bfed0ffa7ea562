// The program that has what needs LibTorch: libexec/stowage/stowage-torch, beside the folder of `stowage`.
#ifndef STOWAGE_CLIENT_CLI_TORCH_PROGRAM_H_
#define STOWAGE_CLIENT_CLI_TORCH_PROGRAM_H_

#include <string>
#include <vector>

namespace stowage {

// Becomes that program, with these arguments, and does not return. Where it is not installed: says so on
// standard error and returns kExitUsage.
int BecomeTorchProgram(const std::vector<std::string>& arguments);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TORCH_PROGRAM_H_
