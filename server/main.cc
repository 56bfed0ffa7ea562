// stowaged: the planning service. Flags in config.cc, life and end in README.md.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/cache/memory_plan_store.h"
#include "server/cache/metrics_plan_store.h"
#include "server/config.h"
#include "server/config_flags.h"
#include "server/metrics/prometheus_metrics.h"
#include "server/planning/plan_solver.h"
#include "server/planning/planning_service.h"
#include "server/rpc/rpc_server.h"
#include "solvers/base/flag_parser.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

constexpr int kExitCannotListen = 1;
constexpr int kExitBadFlags = 2;

// The signals that end the service. Blocked before gRPC starts its threads, which inherit the mask:
// only sigwait sees them.
class StopSignals {
 public:
  StopSignals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGTERM);
    sigaddset(&set_, SIGINT);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    signal(SIGPIPE, SIG_IGN);  // whoever read our output may be gone before we are
  }

  std::string Wait() const {
    int number = 0;
    sigwait(&set_, &number);
    return number == SIGTERM ? "SIGTERM" : "SIGINT";
  }

  // Ends the process at once if one more comes before `done`.
  void EndOnNext(const std::atomic<bool>& done) const {
    while (!done) {
      const timespec poll = {0, 20000000};  // 20 ms
      const int number = sigtimedwait(&set_, nullptr, &poll);
      if (number > 0) {
        std::cerr << "stowaged: second signal: stopping at once\n";
        _exit(128 + number);
      }
    }
  }

 private:
  sigset_t set_;
};

std::vector<std::string> SolverNames() {
  std::vector<std::string> names;
  for (const SolverInfo& solver : SolverInfos()) names.push_back(solver.name);
  return names;
}

void Drain(const StopSignals& signals, std::chrono::nanoseconds timeout, RpcServer* server,
           PlanningService* planning) {
  std::cout << "stowaged: " << signals.Wait() << ": draining, at most "
            << absl::FormatDuration(absl::FromChrono(timeout)) << std::endl;
  std::atomic<bool> done{false};
  std::thread second([&signals, &done] { signals.EndOnNext(done); });
  server->SetNotServing();
  const DrainResult drained = planning->Drain(PlanningService::Clock::now() + timeout);
  // All calls are answered; what is left is to hand the answers over.
  server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  done = true;
  second.join();
  std::cout << "stowaged: drained: " << drained.finished << " open calls answered, "
            << drained.abandoned << " abandoned" << std::endl;
}

int Fail(int code, const absl::Status& status) {
  std::cerr << "stowaged: " << status.message() << "\n";
  if (code == kExitBadFlags) std::cerr << "stowaged --help lists the flags\n";
  return code;
}

int Serve(const ServerConfig& config) {
  const StopSignals signals;
  PrometheusMetrics metrics({SolverNames(), {}}, config.rpc.version);
  std::string metrics_address = "none";
  if (!config.metrics_listen.empty()) {
    const absl::StatusOr<std::string> bound = metrics.Serve(config.metrics_listen);
    if (!bound.ok()) return Fail(kExitCannotListen, bound.status());
    metrics_address = *bound;
  }
  MetricsPlanStore store(std::make_unique<MemoryPlanStore>(config.cache_capacity),
                         CacheTier::kMemory, &metrics);
  const LibraryPlanSolver solver;
  PlanningService planning(config.planning, &store, &solver, &metrics);
  absl::StatusOr<std::unique_ptr<RpcServer>> server =
      RpcServer::Start(config.rpc, &planning, &metrics);
  if (!server.ok()) return Fail(kExitCannotListen, server.status());
  std::cout << "listening on " << (*server)->address() << ", metrics on " << metrics_address
            << std::endl;
  Drain(signals, config.drain_timeout, server->get(), &planning);
  return 0;
}

int PrintHelp() {
  std::cout << "stowaged " << STOWAGE_VERSION << ": plans for the memory of training, over gRPC\n\n"
            << FlagHelp(FlagNames());
  return 0;
}

int Main(const std::vector<std::string>& arguments) {
  const absl::StatusOr<CommandLine> line = ReadCommandLine(arguments, FlagNames());
  if (!line.ok()) return Fail(kExitBadFlags, line.status());
  if (line->help) return PrintHelp();
  const absl::StatusOr<ConfigSources> sources = ConfigSources::Apply(*line, ProcessEnvironment);
  if (!sources.ok()) return Fail(kExitBadFlags, sources.status());
  if (absl::GetFlag(FLAGS_version)) {
    std::cout << "stowaged " << STOWAGE_VERSION << "\n";
    return 0;
  }
  absl::StatusOr<ServerConfig> config = ConfigFromFlags(*sources);
  if (!config.ok()) return Fail(kExitBadFlags, config.status());
  if (absl::GetFlag(FLAGS_check_config)) {
    std::cout << EffectiveConfig(*sources);
    return 0;
  }
  config->rpc.version = STOWAGE_VERSION;
  return Serve(*config);
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
