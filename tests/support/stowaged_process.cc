#include "tests/support/stowaged_process.h"

#include <csignal>
#include <cstddef>
#include <cstdlib>

namespace stowage {

namespace {

std::vector<std::string> Arguments(const std::vector<std::string>& flags) {
  const char* const moved = std::getenv("STOWAGED_BINARY");  // of a build that was copied elsewhere
  std::vector<std::string> arguments = {moved != nullptr ? moved : STOWAGED_BINARY,
                                        "--store=memory", "--listen=127.0.0.1:0",
                                        "--metrics_listen="};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  return arguments;
}

}  // namespace

StowagedProcess::StowagedProcess(const std::vector<std::string>& flags)
    : process_(Arguments(flags)) {
  const std::string before = "listening on ";
  const std::string ready = process_.ReadUntil(", metrics on");
  const size_t start = ready.find(before);
  if (start == std::string::npos) return;
  const size_t address = start + before.size();
  address_ = ready.substr(address, ready.find(',', address) - address);
}

int StowagedProcess::Stop() {
  process_.Signal(SIGTERM);
  return process_.Wait();
}

void StowagedProcess::Kill() {
  process_.Signal(SIGKILL);
  process_.Wait();
}

}  // namespace stowage
