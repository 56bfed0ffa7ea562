#include "server/drain.h"

#include <pthread.h>
#include <unistd.h>

#include <iostream>
#include <thread>

#include "absl/time/time.h"

namespace stowage {

StopSignals::StopSignals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  signal(SIGPIPE, SIG_IGN);  // whoever read our output may be gone before we are
}

std::string StopSignals::Wait() const {
  int number = 0;
  sigwait(&set_, &number);
  return number == SIGTERM ? "SIGTERM" : "SIGINT";
}

void StopSignals::EndOnNext(const std::atomic<bool>& done) const {
  while (!done) {
    const timespec poll = {0, 20000000};  // 20 ms
    const int number = sigtimedwait(&set_, nullptr, &poll);
    if (number > 0) {
      std::cerr << "stowaged: second signal: stopping at once\n";
      _exit(128 + number);
    }
  }
}

void DrainOnSignal(const StopSignals& signals, std::chrono::nanoseconds timeout, RpcServer* server,
                   PlanningService* planning, Log* log) {
  const std::string signal = signals.Wait();
  std::cout << "stowaged: " << signal << ": draining, at most "
            << absl::FormatDuration(absl::FromChrono(timeout)) << std::endl;
  log->Write(LogLevel::kInfo, "draining",
             [&signal](LogLine* line) { line->Add("signal", signal); });
  std::atomic<bool> done{false};
  std::thread second([&signals, &done] { signals.EndOnNext(done); });
  server->SetNotServing();
  const DrainResult drained = planning->Drain(PlanningService::Clock::now() + timeout);
  // All calls are answered; what is left is to hand the answers over.
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  done = true;
  second.join();
  log->Write(LogLevel::kInfo, "drained", [&drained](LogLine* line) {
    line->Add("answered", drained.finished).Add("abandoned", drained.abandoned);
  });
  std::cout << "stowaged: drained: " << drained.finished << " open calls answered, "
            << drained.abandoned << " abandoned" << std::endl;
}

}  // namespace stowage
