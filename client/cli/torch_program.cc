#include "client/cli/torch_program.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"

namespace stowage {
namespace {

// In a build tree and where it is installed.
std::string TorchProgramPath() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return (self.parent_path().parent_path() / "libexec/stowage/stowage-torch").string();
}

}  // namespace

int BecomeTorchProgram(const std::vector<std::string>& arguments) {
  const std::string path = TorchProgramPath();
  std::vector<char*> words = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) {
    words.push_back(const_cast<char*>(argument.c_str()));
  }
  words.push_back(nullptr);
  std::cout.flush();
  execv(path.c_str(), words.data());
  const std::string command = arguments.empty() ? "" : arguments[0];
  std::cerr
      << (errno == ENOENT
              ? absl::StrCat(
                    "stowage ", command,
                    ": needs LibTorch, and this installation is without: there is no ", path,
                    " (build with -DSTOWAGE_TORCH=ON and install the component `torch_command`, or "
                    "the package stowage-torch)\n")
              : absl::StrCat("stowage ", command, ": cannot run ", path, ": ", strerror(errno),
                             "\n"));
  return kExitUsage;
}

}  // namespace stowage
