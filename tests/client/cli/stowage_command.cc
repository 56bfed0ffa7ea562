#include "tests/client/cli/stowage_command.h"

#include <sys/wait.h>

#include <cstdio>

namespace stowage {

Result Stowage(const std::string& arguments, bool with_errors) {
  const std::string command =
      std::string(STOWAGE_BINARY) + " " + arguments + (with_errors ? " 2>&1" : " 2>/dev/null");
  Result result;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.out.append(buffer, n);
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::string Data(const std::string& file) {
  return std::string(STOWAGE_SOURCE_DIR) + "/tests/data/" + file;
}

}  // namespace stowage
