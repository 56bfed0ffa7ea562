#include "server/drain.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <future>
#include <iostream>
#include <thread>

#include "absl/time/time.h"

namespace stowage {
namespace {

// Health says no, connections are told to take no new calls, open ones are answered, at most for
// `timeout`. `ended_before`: calls that had ended when the drain was asked for.
DrainResult Drain(std::chrono::nanoseconds timeout, int64_t ended_before, RpcServer* server,
                  PlanningService* planning) {
  using Clock = PlanningService::Clock;
  // For the answers to the calls that are open in the end.
  constexpr std::chrono::seconds kHandOver{1};
  const Clock::time_point deadline = Clock::now() + timeout;
  server->SetNotServing();
  // Connections are told at once, so that their clients' next calls go elsewhere. What a handler has begun is answered:
  // planning closes its door last. gRPC ends what comes before a client knows, and the SDK tries that again.
  std::future<void> ended = std::async(std::launch::async, [server, timeout, kHandOver] {
    server->Shutdown(std::chrono::system_clock::now() +
                     std::chrono::duration_cast<std::chrono::milliseconds>(timeout) +
                     2 * kHandOver);
  });
  Clock::time_point last_open = Clock::now();
  while (ended.wait_for(std::chrono::milliseconds(10)) == std::future_status::timeout &&
         Clock::now() < deadline) {
    if (planning->open_calls() > 0 || planning->tasks() > 0) last_open = Clock::now();
    // What is left waits for nothing here: a watch of health, say.
    if (Clock::now() > last_open + kHandOver) break;
  }
  // A call that gRPC has answered is counted a moment later: not abandoned.
  const bool answered = ended.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  DrainResult drained = planning->Drain(Clock::now() + (answered ? kHandOver : Clock::duration(0)));
  drained.finished = drained.ended - ended_before;
  if (ended.wait_for(kHandOver) == std::future_status::timeout) server->CancelCalls();
  ended.wait();
  return drained;
}

}  // namespace

StopSignals::StopSignals() {
  sigemptyset(&set_);
  sigaddset(&set_, SIGTERM);
  sigaddset(&set_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set_, nullptr);
  signal(SIGPIPE, SIG_IGN);  // whoever read our output may be gone before we are
  signal(SIGHUP, SIG_IGN);   // files that change are read again without it
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
  // Before anyone learns of the drain: a call that ends at once was open, too.
  const int64_t ended_before = planning->ended_calls();
  std::cout << "stowaged: " << signal << ": draining, at most "
            << absl::FormatDuration(absl::FromChrono(timeout)) << std::endl;
  log->Write(LogLevel::kInfo, "draining",
             [&signal](LogLine* line) { line->Add("signal", signal); });
  std::atomic<bool> done{false};
  std::thread second([&signals, &done] { signals.EndOnNext(done); });
  const DrainResult drained = Drain(timeout, ended_before, server, planning);
  done = true;
  second.join();
  log->Write(LogLevel::kInfo, "drained", [&drained](LogLine* line) {
    line->Add("answered", drained.finished).Add("abandoned", drained.abandoned);
  });
  std::cout << "stowaged: drained: " << drained.finished << " open calls answered, "
            << drained.abandoned << " abandoned" << std::endl;
}

}  // namespace stowage
