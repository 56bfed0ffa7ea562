#include "server/config/config_checks.h"

#include <cstdint>
#include <filesystem>
#include <limits>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/otlp/otlp_exporter.h"
#include "server/auth/file_watcher.h"
#include "server/config/config_flags.h"
#include "server/observe/log_line.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"

namespace stowage {
namespace {

absl::Status InRange(const ConfigSources& sources, const std::string& flag, int64_t value,
                     int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return FlagError(sources, flag, absl::StrCat(value),
                   absl::StrCat("must be in [", least, ", ", most, "]"));
}

absl::Status CheckHostPort(const ConfigSources& sources, const std::string& flag,
                           const std::string& address) {
  const size_t colon = address.rfind(':');
  int port = 0;
  const bool valid = colon != std::string::npos && colon > 0 &&
                     absl::SimpleAtoi(address.substr(colon + 1), &port) && port >= 0 &&
                     port <= 65535;
  return valid ? absl::OkStatus()
               : FlagError(sources, flag, address, "must be HOST:PORT, port in [0, 65535]");
}

absl::Status CheckListen(const ConfigSources& sources, const std::string& address) {
  if (!absl::StartsWith(address, "unix:")) return CheckHostPort(sources, "listen", address);
  // sun_path holds 108 bytes, the last of them 0.
  const size_t length = address.size() - std::string("unix:").size();
  if (length >= 1 && length <= 107) return absl::OkStatus();
  return FlagError(sources, "listen", address,
                   "the path of a unix socket must have 1 to 107 bytes");
}

absl::Status CheckCollector(const ConfigSources& sources) {
  const std::string collector = absl::GetFlag(FLAGS_otlp_endpoint);
  const OtlpEndpoint endpoint = ParseOtlpEndpoint(collector);
  if (const std::string ca = absl::GetFlag(FLAGS_otlp_ca); !ca.empty()) {
    if (!endpoint.tls) {
      return FlagError(sources, "otlp_ca", ca, "needs --otlp_endpoint=https://HOST:PORT");
    }
    if (const auto read = ReadSmallFile(ca); !read.ok()) {
      return FlagError(sources, "otlp_ca", ca, "must be a file that can be read");
    }
  }
  if (collector.empty() || absl::StartsWith(collector, "unix:")) return absl::OkStatus();
  absl::Status status = CheckHostPort(sources, "otlp_endpoint", endpoint.target);
  if (status.ok()) return status;
  return FlagError(sources, "otlp_endpoint", collector,
                   "must be HOST:PORT, https://HOST:PORT or unix:PATH, port in [0, 65535]");
}

absl::Status CheckAddresses(const ConfigSources& sources) {
  const std::string metrics = absl::GetFlag(FLAGS_metrics_listen);
  absl::Status status = CheckListen(sources, absl::GetFlag(FLAGS_listen));
  if (status.ok() && !metrics.empty()) status = CheckHostPort(sources, "metrics_listen", metrics);
  if (status.ok()) status = CheckCollector(sources);
  return status;
}

absl::Status CheckNumbers(const ConfigSources& sources) {
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
      {"request_bytes", absl::GetFlag(FLAGS_request_bytes), absl::GetFlag(FLAGS_max_message_bytes),
       kAny},
      {"request_reserve_bytes", absl::GetFlag(FLAGS_request_reserve_bytes), int64_t{64} << 10,
       kAny},
      {"lookup_threads", absl::GetFlag(FLAGS_lookup_threads), 1, 1024},
      {"conversion_threads", absl::GetFlag(FLAGS_conversion_threads), 1, 1024},
      {"admin_threads", absl::GetFlag(FLAGS_admin_threads), 1, 1024},
      {"cache_bytes", absl::GetFlag(FLAGS_cache_bytes), int64_t{1} << 20, kAny},
      {"sqlite_bytes", absl::GetFlag(FLAGS_sqlite_bytes), int64_t{1} << 20, kAny},
      {"max_message_bytes", absl::GetFlag(FLAGS_max_message_bytes), 1024,
       std::numeric_limits<int>::max()},
      {"max_stages", absl::GetFlag(FLAGS_max_stages), 1, Chain::kMaxStages},
      {"max_vertices", absl::GetFlag(FLAGS_max_vertices), 1, Graph::kMaxVertices},
  };
  for (const Rule& rule : rules) {
    absl::Status status = InRange(sources, rule.flag, rule.value, rule.least, rule.most);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckDurations(const ConfigSources& sources) {
  struct Rule {
    const char* flag;
    absl::Duration value;
    absl::Duration least;
    absl::Duration most;
  };
  constexpr absl::Duration kDay = absl::Hours(24);
  const absl::Duration age = absl::GetFlag(FLAGS_max_connection_age);
  const Rule rules[] = {
      {"drain_timeout", absl::GetFlag(FLAGS_drain_timeout), absl::ZeroDuration(), kDay},
      {"max_solve_time", absl::GetFlag(FLAGS_max_solve_time), absl::Milliseconds(1), kDay},
      {"max_deadline", absl::GetFlag(FLAGS_max_deadline), absl::Milliseconds(1), kDay},
      {"reload_interval", absl::GetFlag(FLAGS_reload_interval), absl::Seconds(1), kDay},
      {"redis_timeout", absl::GetFlag(FLAGS_redis_timeout), absl::Milliseconds(1),
       absl::Seconds(10)},
      {"decisions_redis_timeout", absl::GetFlag(FLAGS_decisions_redis_timeout),
       absl::Milliseconds(1), absl::Seconds(10)},
      {"redis_ttl", absl::GetFlag(FLAGS_redis_ttl), absl::Minutes(1), 365 * kDay},
      {"max_connection_age", age == absl::ZeroDuration() ? kDay : age, absl::Seconds(1), kDay},
  };
  for (const Rule& rule : rules) {
    if (rule.value >= rule.least && rule.value <= rule.most) continue;
    return FlagError(sources, rule.flag, absl::FormatDuration(rule.value),
                     absl::StrCat("must be in [", absl::FormatDuration(rule.least), ", ",
                                  absl::FormatDuration(rule.most), "]"));
  }
  return absl::OkStatus();
}

absl::Status CheckOthers(const ConfigSources& sources) {
  const double share = absl::GetFlag(FLAGS_tenant_share);
  if (!(share > 0 && share <= 1)) {
    return FlagError(sources, "tenant_share", absl::StrCat(share), "must be in (0, 1]");
  }
  const double traced = absl::GetFlag(FLAGS_trace_share);
  if (!(traced >= 0 && traced <= 1)) {
    return FlagError(sources, "trace_share", absl::StrCat(traced), "must be in [0, 1]");
  }
  const std::string level = absl::GetFlag(FLAGS_log_level);
  if (!ParseLogLevel(level)) {
    return FlagError(sources, "log_level", level, "must be debug, info, warning or error");
  }
  const std::string audit = absl::GetFlag(FLAGS_audit_log);
  return audit.empty() ? absl::OkStatus() : CheckFolder(sources, "audit_log", audit, audit);
}

}  // namespace

absl::Status FlagError(const ConfigSources& sources, const std::string& flag,
                       const std::string& value, const std::string& rule) {
  return absl::InvalidArgumentError(absl::StrCat(sources.Describe(flag), "=", value, ": ", rule));
}

absl::Status CheckFolder(const ConfigSources& sources, const std::string& flag,
                         const std::string& value, const std::string& path) {
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  std::error_code error;
  if (std::filesystem::is_directory(parent, error)) return absl::OkStatus();
  return FlagError(sources, flag, value, "the folder " + parent.string() + " is not there");
}

absl::Status CheckFlags(const ConfigSources& sources) {
  for (const auto& check : {CheckAddresses, CheckNumbers, CheckDurations, CheckOthers}) {
    if (absl::Status status = check(sources); !status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace stowage
