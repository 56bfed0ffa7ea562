#include "server/config/config.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/time/time.h"
#include "server/config/config_checks.h"
#include "server/config/config_flags.h"
#include "server/config/config_security.h"
#include "server/config/config_store.h"
#include "server/observe/process_limits.h"

namespace stowage {
namespace {

int SolverThreads() {
  const int threads = absl::GetFlag(FLAGS_solver_threads);
  return threads > 0 ? threads : ProcessorLimit();
}

// Their looks are short and have pauses.
int ParkedThreads(int lookup_threads) { return std::max(lookup_threads / 2, 1); }

std::array<int, kLaneCount> LaneThreads() {
  std::array<int, kLaneCount> threads{};
  const int conversions = absl::GetFlag(FLAGS_conversion_threads);
  const int lookups = absl::GetFlag(FLAGS_lookup_threads);
  threads[static_cast<size_t>(Lane::kLookups)] = lookups;
  threads[static_cast<size_t>(Lane::kParked)] = ParkedThreads(lookups);
  threads[static_cast<size_t>(Lane::kConversions)] = conversions;
  threads[static_cast<size_t>(Lane::kJudging)] = conversions;
  threads[static_cast<size_t>(Lane::kAdministration)] = absl::GetFlag(FLAGS_admin_threads);
  return threads;
}

// Nobody is kept from anything for others who cannot be told from them.
AccountShare ShareOf(const AuthOptions& auth) {
  const double share = absl::GetFlag(FLAGS_tenant_share);
  return {share, auth.wants_identity() ? share : 1.0};
}

}  // namespace

LiveConfig LiveConfigFromFlags() {
  LiveConfig live;
  live.log_level = *ParseLogLevel(absl::GetFlag(FLAGS_log_level));
  live.limits.queue_limit = static_cast<size_t>(absl::GetFlag(FLAGS_queue_limit));
  live.limits.max_open_calls = absl::GetFlag(FLAGS_max_open_calls);
  live.limits.share = ShareOf(AuthOf());
  return live;
}

absl::StatusOr<ServerConfig> ConfigFromFlags(const ConfigSources& sources) {
  for (const auto& check : {CheckFlags, CheckSecurity}) {
    if (absl::Status status = check(sources); !status.ok()) return status;
  }
  absl::StatusOr<StoreConfig> store = StoreConfigFromFlags(sources);
  if (!store.ok()) return store.status();
  absl::StatusOr<CatalogueConfig> catalogue = CatalogueConfigFromFlags(sources);
  if (!catalogue.ok()) return catalogue.status();
  ServerConfig config;
  config.rpc.tls = TlsOf();
  config.rpc.unix_socket_mode = *UnixSocketMode();
  config.rpc.max_connection_age =
      absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_max_connection_age));
  config.auth = AuthOf();
  const LiveConfig live = LiveConfigFromFlags();
  config.log_level = live.log_level;
  config.rpc.listen = absl::GetFlag(FLAGS_listen);
  config.rpc.limits.max_message_bytes = absl::GetFlag(FLAGS_max_message_bytes);
  config.rpc.limits.max_stages = absl::GetFlag(FLAGS_max_stages);
  config.rpc.limits.max_vertices = absl::GetFlag(FLAGS_max_vertices);
  config.metrics_listen = absl::GetFlag(FLAGS_metrics_listen);
  config.planning.solver_threads = SolverThreads();
  config.planning.limits = live.limits;
  config.planning.solver_memory = Bytes(absl::GetFlag(FLAGS_solver_memory_bytes));
  config.planning.max_solve_time = absl::ToChronoNanoseconds(absl::GetFlag(FLAGS_max_solve_time));
  config.planning.max_deadline = absl::ToChronoNanoseconds(absl::GetFlag(FLAGS_max_deadline));
  config.planning.request_bytes = Bytes(absl::GetFlag(FLAGS_request_bytes));
  config.planning.request_reserve = Bytes(absl::GetFlag(FLAGS_request_reserve_bytes));
  config.rpc.transport_bytes = 2 * static_cast<size_t>(absl::GetFlag(FLAGS_request_bytes) +
                                                       absl::GetFlag(FLAGS_request_reserve_bytes));
  config.planning.intake.threads = LaneThreads();
  config.store = *std::move(store);
  const std::array<int, kLaneCount>& lanes = config.planning.intake.threads;
  config.store.threads =
      config.planning.solver_threads + lanes[static_cast<size_t>(Lane::kLookups)] +
      lanes[static_cast<size_t>(Lane::kParked)] + lanes[static_cast<size_t>(Lane::kAdministration)];
  config.catalogue = *std::move(catalogue);
  config.audit_log = absl::GetFlag(FLAGS_audit_log);
  config.otlp_endpoint = absl::GetFlag(FLAGS_otlp_endpoint);
  config.otlp_ca = absl::GetFlag(FLAGS_otlp_ca);
  config.rpc.trace_share = absl::GetFlag(FLAGS_trace_share);
  config.drain_timeout = absl::ToChronoNanoseconds(absl::GetFlag(FLAGS_drain_timeout));
  return config;
}

Bytes PlannedMemory(const ServerConfig& config) {
  const Bytes requests = config.planning.request_bytes + config.planning.request_reserve;
  return config.planning.solver_memory + config.store.memory_bytes +
         Bytes(static_cast<int64_t>(kMemoryPerRequestByte) * requests.value()) +
         Bytes(static_cast<int64_t>(config.rpc.transport_bytes));
}

}  // namespace stowage
