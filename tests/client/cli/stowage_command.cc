#include "tests/client/cli/stowage_command.h"

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace stowage {
namespace {

int CodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

Result Run(const std::string& command) {
  Result result;
  FILE* pipe = popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) result.out.append(buffer, n);
  result.code = CodeOf(pclose(pipe));
  return result;
}

}  // namespace

Result Stowage(const std::string& arguments, bool with_errors) {
  return Run(std::string(STOWAGE_BINARY) + " " + arguments +
             (with_errors ? " 2>&1" : " 2>/dev/null"));
}

Result StowageOnTerminal(const std::string& arguments) {
  const std::string command = std::string(STOWAGE_BINARY) + " " + arguments;
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    _exit(127);
  }
  Result result;
  if (child < 0) return result;
  char buffer[4096];
  // EIO is the end: nobody holds the other side any more.
  for (ssize_t n; (n = read(terminal, buffer, sizeof buffer)) > 0;) {
    result.out.append(buffer, static_cast<size_t>(n));
  }
  close(terminal);
  int status = 0;
  waitpid(child, &status, 0);
  result.code = CodeOf(status);
  return result;
}

Result Shell(const std::string& command, const std::string& folder) {
  const std::string binary = STOWAGE_BINARY;
  return Run("cd '" + folder + "' && PATH='" + binary.substr(0, binary.rfind('/')) +
             "':$PATH && { " + command + "\n} 2>&1");
}

std::string Data(const std::string& file) {
  return std::string(STOWAGE_SOURCE_DIR) + "/tests/data/" + file;
}

}  // namespace stowage
