// stowaged: the planning service. Flags in config_flags.cc, how to run it in operating.md.
#include <malloc.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "proto/otlp/otlp_exporter.h"
#include "server/auth/authenticator.h"
#include "server/auth/file_watcher.h"
#include "server/catalogue/catalogue_import.h"
#include "server/config/config.h"
#include "server/config/config_flags.h"
#include "server/config/live_config.h"
#include "server/config/state_folder.h"
#include "server/config/stores.h"
#include "server/decisions/decision_store.h"
#include "server/decisions/decision_transfer.h"
#include "server/drain.h"
#include "server/observe/audit_log.h"
#include "server/observe/log.h"
#include "server/observe/process_limits.h"
#include "server/observe/prometheus_metrics.h"
#include "server/rpc/build_info.h"
#include "server/rpc/library_log.h"
#include "server/rpc/lock_order.h"
#include "server/rpc/rpc_server.h"
#include "server/service/plan_solver.h"
#include "server/service/planning_service.h"
#include "solvers/base/flag_parser.h"
#include "solvers/base/version.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

constexpr int kExitCannotListen = 1;
constexpr int kExitBadFlags = 2;

std::vector<std::string> SolverNames() {
  std::vector<std::string> names;
  for (const Solver* solver : AllSolvers()) names.push_back(solver->info().name);
  return names;
}

int Fail(int code, const absl::Status& status) {
  std::cerr << "stowaged: " << status.message() << "\n";
  if (code == kExitBadFlags) std::cerr << "stowaged --help lists the flags\n";
  return code;
}

// Null where no identity is asked for.
absl::StatusOr<std::unique_ptr<Authenticator>> MakeAuthenticator(const AuthOptions& options,
                                                                 ServerMetrics* metrics, Log* log) {
  if (!options.wants_identity()) return std::unique_ptr<Authenticator>();
  return Authenticator::Make(options, metrics, log);
}

// Null where none is kept.
absl::StatusOr<std::unique_ptr<AuditLog>> OpenAuditLog(const std::string& path,
                                                       ServerMetrics* metrics) {
  if (path.empty()) return std::unique_ptr<AuditLog>();
  AuditOptions options;
  options.path = path;
  options.metrics = metrics;
  return AuditLog::Open(options);
}

// Null where none are sent.
absl::StatusOr<std::unique_ptr<OtlpExporter>> MakeExporter(const ServerConfig& config,
                                                           ServerMetrics* metrics) {
  if (config.otlp_endpoint.empty()) return std::unique_ptr<OtlpExporter>();
  OtlpOptions options;
  options.endpoint = config.otlp_endpoint;
  if (!config.otlp_ca.empty()) {
    absl::StatusOr<std::string> roots = ReadSmallFile(config.otlp_ca);
    if (!roots.ok()) return roots.status();
    options.root_certificates = *std::move(roots);
  }
  options.service_name = "stowaged";
  options.service_version = config.rpc.version;
  options.dropped = [metrics](int64_t spans) { metrics->LinesDropped(LineFile::kSpans, spans); };
  return std::make_unique<OtlpExporter>(options);
}

void LogStart(const ServerConfig& config, const std::string& address, Log* log) {
  log->Write(LogLevel::kInfo, "started", [&](LogLine* line) {
    line->Add("version", config.rpc.version).Add("build", BuildInfo()).Add("address", address);
    line->Add("tls", std::string(config.rpc.tls.enabled() ? "yes" : "no"));
    line->Add("identities", std::string(config.auth.wants_identity() ? "yes" : "no"));
  });
}

// `flag`: of its address.
void WarnOfOpenRedis(const std::optional<RedisAddress>& redis, const std::string& flag, Log* log) {
  if (!redis || !IsRedisOpen(*redis)) return;
  log->Write(LogLevel::kWarning, "redis_open", [&](LogLine* line) {
    line->Add("host", HostsOf(*redis).front().host);
    line->Add("reason", "all who reach it may read, change and delete what is in it: set " + flag +
                            "_password_file or " + flag +
                            "_cert, and keep it on a network of its own");
  });
}

void WarnOfLosableDecisions(const StoreConfig& config, Log* log) {
  if (!MayLoseDecisions(config)) return;
  log->Write(LogLevel::kWarning, "decisions_not_kept", [](LogLine* line) {
    line->Add("reason",
              std::string("pins, roll-backs, freezes and deletions are in this process and "
                          "in Redis alone: when both have lost them, deleted plans may "
                          "come back and pins are gone: set --decisions_file, or "
                          "--decisions_redis"));
  });
}

void WarnOfMemory(const ServerConfig& config, Log* log) {
  const int64_t planned = PlannedMemory(config).value(), limit = MemoryLimitBytes();
  if (planned <= limit) return;
  log->Write(LogLevel::kWarning, "memory_over_limit", [&](LogLine* line) {
    line->Add("planned_bytes", planned).Add("limit_bytes", limit);
    line->Add("reason", std::string("under load the process may be ended for its memory: lower "
                                    "--solver_memory_bytes, --request_bytes or --cache_bytes"));
  });
}

// Before the first call: a job that finds no plan solves one.
void FillFrom(const CatalogueConfig& catalogue, PlanStore* store, Log* log) {
  if (catalogue.networks.empty()) return;
  const CatalogueImport import = ImportCatalogue(catalogue.networks, catalogue.environments, store);
  const LogLevel level = import.failed > 0 ? LogLevel::kWarning : LogLevel::kInfo;
  log->Write(level, "catalogue", [&](LogLine* line) {
    line->Add("imported", int64_t{import.imported}).Add("replaced", int64_t{import.replaced});
    line->Add("present", int64_t{import.present}).Add("failed", int64_t{import.failed});
    if (import.failed > 0) line->Add("reason", import.why);
  });
}

// Solves take tables of megabytes from many threads and give them back. Left to itself glibc soon takes
// such blocks from its heaps, where they cannot go back to the system, and has many heaps.
void KeepMemoryFlat() {
  mallopt(M_MMAP_THRESHOLD, 1 << 20);
  mallopt(M_TRIM_THRESHOLD, 2 << 20);
  mallopt(M_ARENA_MAX, 4);
}

int Serve(ServerConfig config, const CommandLine& line, const ConfigSources& sources) {
  KeepMemoryFlat();
  LeaveLockOrderUnchecked();
  const StopSignals signals;
  PrometheusMetrics metrics(SolverNames(), config.rpc.version);
  Log log(config.log_level, WriteToStandardError,
          [&metrics](int64_t lines) { metrics.LinesDropped(LineFile::kLog, lines); });
  const LibraryLog library_log(&log);
  std::string metrics_address = "none";
  if (!config.metrics_listen.empty()) {
    const absl::StatusOr<std::string> bound = metrics.Serve(config.metrics_listen);
    if (!bound.ok()) return Fail(kExitCannotListen, bound.status());
    metrics_address = *bound;
  }
  const auto authenticator = MakeAuthenticator(config.auth, &metrics, &log);
  if (!authenticator.ok()) return Fail(kExitBadFlags, authenticator.status());
  const absl::StatusOr<Stores> stores = OpenStores(config.store, &metrics, &log);
  if (!stores.ok()) return Fail(kExitCannotListen, stores.status());
  config.planning.lease = stores->lease.get();
  WarnOfOpenRedis(config.store.redis, "--redis", &log);
  WarnOfOpenRedis(config.store.decisions_redis, "--decisions_redis", &log);
  WarnOfLosableDecisions(config.store, &log);
  WarnOfMemory(config, &log);
  FillFrom(config.catalogue, stores->plans.get(), &log);
  const auto audit = OpenAuditLog(config.audit_log, &metrics);
  if (!audit.ok()) return Fail(kExitCannotListen, audit.status());
  config.planning.audit = audit->get();
  // Ends after all that makes spans.
  const auto exporter = MakeExporter(config, &metrics);
  if (!exporter.ok()) return Fail(kExitBadFlags, exporter.status());
  config.planning.tracer = exporter->get();
  config.planning.trace_share = config.rpc.trace_share;
  const LibraryPlanSolver solver;
  PlanningService planning(config.planning, stores->plans.get(), &solver, &metrics);
  config.rpc.log = &log;
  config.rpc.authenticator = authenticator->get();
  config.rpc.audit = audit->get();
  config.rpc.tracer = exporter->get();
  config.rpc.reported_steps = stores->reported_steps.get();
  config.rpc.decisions = stores->decisions.get();
  absl::StatusOr<std::unique_ptr<RpcServer>> server =
      RpcServer::Start(config.rpc, &planning, stores->plans.get(), &metrics);
  if (!server.ok()) return Fail(kExitCannotListen, server.status());
  std::cout << "listening on " << (*server)->address() << ", metrics on " << metrics_address
            << std::endl;
  LogStart(config, (*server)->address(), &log);
  const auto live = WatchConfig(
      line, sources,
      [&](const LiveConfig& now) {
        log.SetLevel(now.log_level);
        planning.SetLimits(now.limits);
      },
      &metrics, &log);
  DrainOnSignal(signals, config.drain_timeout, server->get(), &planning, &log);
  return 0;
}

int NoDecisions() {
  return Fail(kExitBadFlags, absl::InvalidArgumentError(
                                 "there is no file of decisions: set --decisions_file or --store"));
}

int ExportDecisions(const StoreConfig& store) {
  if (store.decisions_path.empty()) return NoDecisions();
  const auto decisions = SqliteDecisionStore::ReadAll(store.decisions_path);
  if (!decisions.ok()) return Fail(kExitCannotListen, decisions.status());
  std::cout << DecisionsToText(*decisions) << std::flush;
  if (std::cout.good()) return 0;
  return Fail(kExitCannotListen, absl::UnavailableError("cannot write to standard output"));
}

absl::StatusOr<std::vector<KeyedDecision>> DecisionsOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file) return absl::InvalidArgumentError(path + ": cannot be read");
  auto decisions = DecisionsFromText(text);
  if (decisions.ok()) return decisions;
  return absl::InvalidArgumentError(path + ": " + std::string(decisions.status().message()));
}

int ImportDecisions(const std::string& path, const StoreConfig& config) {
  if (config.decisions_path.empty()) return NoDecisions();
  const auto decisions = DecisionsOf(path);
  if (!decisions.ok()) return Fail(kExitBadFlags, decisions.status());
  absl::Status made;
  if (!config.state_folder.empty()) made = MakeStateFolder(config.state_folder);
  if (!made.ok()) return Fail(kExitCannotListen, made);
  const auto store = SqliteDecisionStore::Open(config.decisions_path);
  if (!store.ok()) return Fail(kExitCannotListen, store.status());
  const absl::StatusOr<DecisionImport> import = ImportDecisions(*decisions, store->get());
  if (!import.ok()) return Fail(kExitCannotListen, import.status());
  std::cout << "decisions: " << import->taken << " taken, " << import->known << " known\n";
  return 0;
}

int PrintHelp() {
  std::cout << "stowaged " << kVersion << ": plans for the memory of training, over gRPC\n\n"
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
    std::cout << "stowaged " << kVersion << " (solvers " << kSolverVersion << ", " << BuildInfo()
              << ")\n";
    return 0;
  }
  absl::StatusOr<ServerConfig> config = ConfigFromFlags(*sources);
  if (!config.ok()) return Fail(kExitBadFlags, config.status());
  if (absl::GetFlag(FLAGS_check_config)) {
    std::cout << EffectiveConfig(*sources);
    return 0;
  }
  if (absl::GetFlag(FLAGS_export_decisions)) return ExportDecisions(config->store);
  const std::string import = absl::GetFlag(FLAGS_import_decisions);
  if (!import.empty()) return ImportDecisions(import, config->store);
  config->rpc.version = kVersion;
  return Serve(*config, *line, *sources);
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
