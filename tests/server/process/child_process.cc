#include "tests/server/process/child_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace stowage::testing {

using Clock = std::chrono::steady_clock;

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) return;
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that crashes or is killed leaves nothing behind
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    execv(argv[0], argv.data());
    _exit(126);
  }
  close(ends[1]);
  output_ = ends[0];
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0 && !ended_) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (output_ >= 0) close(output_);
}

std::string ChildProcess::ReadUntil(const std::string& text) {
  std::string read_so_far;
  const Clock::time_point patience = Clock::now() + std::chrono::seconds(10);
  while (read_so_far.find(text) == std::string::npos && Clock::now() < patience) {
    pollfd ready = {output_, POLLIN, 0};
    if (poll(&ready, 1, 100) <= 0) continue;
    char byte = 0;
    if (read(output_, &byte, 1) != 1) break;
    read_so_far.push_back(byte);
  }
  return read_so_far;
}

void ChildProcess::DropOutput() {
  pollfd ready = {output_, POLLIN, 0};
  char bytes[4096];
  while (poll(&ready, 1, 0) > 0 && read(output_, bytes, sizeof bytes) > 0) {
  }
}

void ChildProcess::Signal(int number) { kill(pid_, number); }

int ChildProcess::Wait(std::chrono::milliseconds patience) {
  const Clock::time_point deadline = Clock::now() + patience;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) return -1;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ended_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace stowage::testing
