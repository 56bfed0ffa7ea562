#include "tests/support/stowaged_process.h"

#include <csignal>
#include <cstddef>

namespace stowage {

StowagedProcess::StowagedProcess()
    : process_({STOWAGED_BINARY, "--store=memory", "--listen=127.0.0.1:0", "--metrics_listen="}) {
  const std::string ready = process_.ReadUntil(", metrics on");
  const size_t start = ready.find("127.0.0.1:");
  if (start != std::string::npos) address_ = ready.substr(start, ready.find(',', start) - start);
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
