#include "server/config.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <thread>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

ABSL_FLAG(std::string, listen, "127.0.0.1:7070",
          "address of the service: HOST:PORT (port 0 for any) or unix:PATH");
ABSL_FLAG(std::string, metrics_listen, "127.0.0.1:7071",
          "address of the Prometheus endpoint, HOST:PORT; empty disables it");
ABSL_FLAG(int, solver_threads, 0, "threads that solve; 0 for one per processor");
ABSL_FLAG(int64_t, queue_limit, 256, "solves that may wait for a thread; more are refused");
ABSL_FLAG(int64_t, solver_memory_bytes, int64_t{4} << 30,
          "memory for the tables of all solver threads together, in bytes");
ABSL_FLAG(absl::Duration, max_solve_time, absl::Minutes(10),
          "how long a solve may take, queue included, for callers without a deadline");
ABSL_FLAG(int64_t, max_open_calls, 10000,
          "most calls of ComputePlan open at once, those that share a solve included");
ABSL_FLAG(int64_t, cache_bytes, int64_t{256} << 20, "memory for cached plans, in bytes");
ABSL_FLAG(int64_t, max_message_bytes, int64_t{16} << 20, "largest request or answer, in bytes");
ABSL_FLAG(int64_t, max_stages, 10000, "most stages of a chain");
ABSL_FLAG(int64_t, max_vertices, 20000, "most vertices of a graph");
ABSL_FLAG(
    absl::Duration, drain_timeout, absl::Seconds(30),
    "how long SIGTERM waits for open calls, as \"30s\" or \"500ms\"; stopping solves, handing "
    "answers over and closing endpoints may take 3 s more");

namespace stowage {
namespace {

absl::Status FlagError(const std::string& flag, const std::string& value, const std::string& rule) {
  return absl::InvalidArgumentError(absl::StrCat("--", flag, "=", value, ": ", rule));
}

absl::Status InRange(const std::string& flag, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return FlagError(flag, absl::StrCat(value), absl::StrCat("must be in [", least, ", ", most, "]"));
}

absl::Status CheckHostPort(const std::string& flag, const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  const bool valid = colon != std::string::npos && colon > 0 &&
                     absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 0 &&
                     port <= 65535;
  return valid ? absl::OkStatus()
               : FlagError(flag, address, "must be HOST:PORT, port in [0, 65535]");
}

absl::Status CheckListen(const std::string& address) {
  if (!absl::StartsWith(address, "unix:")) return CheckHostPort("listen", address);
  // sun_path holds 108 bytes, the last of them 0.
  const size_t length = address.size() - std::string("unix:").size();
  if (length >= 1 && length <= 107) return absl::OkStatus();
  return FlagError("listen", address, "the path of a unix socket must have 1 to 107 bytes");
}

absl::Status CheckAddresses() {
  const std::string metrics = absl::GetFlag(FLAGS_metrics_listen);
  absl::Status status = CheckListen(absl::GetFlag(FLAGS_listen));
  if (status.ok() && !metrics.empty()) status = CheckHostPort("metrics_listen", metrics);
  return status;
}

absl::Status CheckNumbers() {
  struct Rule {
    const char* flag;
    int64_t value;
    int64_t least;
    int64_t most;
  };
  constexpr int64_t kAny = int64_t{1} << 50;
  const Rule rules[] = {
      {"solver_threads", absl::GetFlag(FLAGS_solver_threads), 0, 1024},
      {"queue_limit", absl::GetFlag(FLAGS_queue_limit), 1, 1000000},
      {"solver_memory_bytes", absl::GetFlag(FLAGS_solver_memory_bytes), int64_t{1} << 20, kAny},
      {"max_open_calls", absl::GetFlag(FLAGS_max_open_calls), 1, 1000000000},
      {"cache_bytes", absl::GetFlag(FLAGS_cache_bytes), int64_t{1} << 20, kAny},
      {"max_message_bytes", absl::GetFlag(FLAGS_max_message_bytes), 1024,
       std::numeric_limits<int>::max()},
      {"max_stages", absl::GetFlag(FLAGS_max_stages), 1, Chain::kMaxStages},
      {"max_vertices", absl::GetFlag(FLAGS_max_vertices), 1, Graph::kMaxVertices},
  };
  for (const Rule& rule : rules) {
    absl::Status status = InRange(rule.flag, rule.value, rule.least, rule.most);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckDuration(const std::string& flag, absl::Duration value, absl::Duration least) {
  if (value >= least && value <= absl::Hours(24)) return absl::OkStatus();
  return FlagError(flag, absl::FormatDuration(value),
                   absl::StrCat("must be in [", absl::FormatDuration(least), ", 24h]"));
}

absl::Status CheckDurations() {
  absl::Status status =
      CheckDuration("drain_timeout", absl::GetFlag(FLAGS_drain_timeout), absl::ZeroDuration());
  if (!status.ok()) return status;
  return CheckDuration("max_solve_time", absl::GetFlag(FLAGS_max_solve_time),
                       absl::Milliseconds(1));
}

int SolverThreads() {
  const int threads = absl::GetFlag(FLAGS_solver_threads);
  return threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

const std::vector<std::string>& FlagNames() {
  static const auto* const kNames =
      new std::vector<std::string>{"listen",         "metrics_listen",      "solver_threads",
                                   "queue_limit",    "solver_memory_bytes", "max_solve_time",
                                   "max_open_calls", "cache_bytes",         "max_message_bytes",
                                   "max_stages",     "max_vertices",        "drain_timeout"};
  return *kNames;
}

absl::StatusOr<ServerConfig> ConfigFromFlags() {
  for (const auto& check : {CheckAddresses, CheckNumbers, CheckDurations}) {
    if (absl::Status status = check(); !status.ok()) return status;
  }
  ServerConfig config;
  config.rpc.listen = absl::GetFlag(FLAGS_listen);
  config.rpc.limits.max_message_bytes = absl::GetFlag(FLAGS_max_message_bytes);
  config.rpc.limits.max_stages = absl::GetFlag(FLAGS_max_stages);
  config.rpc.limits.max_vertices = absl::GetFlag(FLAGS_max_vertices);
  config.metrics_listen = absl::GetFlag(FLAGS_metrics_listen);
  config.planning.solver_threads = SolverThreads();
  config.planning.queue_limit = static_cast<size_t>(absl::GetFlag(FLAGS_queue_limit));
  config.planning.solver_memory = Bytes(absl::GetFlag(FLAGS_solver_memory_bytes));
  config.planning.max_solve_time = absl::ToChronoNanoseconds(absl::GetFlag(FLAGS_max_solve_time));
  config.planning.max_open_calls = absl::GetFlag(FLAGS_max_open_calls);
  config.cache_capacity = Bytes(absl::GetFlag(FLAGS_cache_bytes));
  config.drain_timeout = absl::ToChronoNanoseconds(absl::GetFlag(FLAGS_drain_timeout));
  return config;
}

}  // namespace stowage
