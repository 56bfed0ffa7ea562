// What the flags of stowaged say, as the options of its parts.
#ifndef STOWAGE_SERVER_CONFIG_CONFIG_H_
#define STOWAGE_SERVER_CONFIG_CONFIG_H_

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth/authenticator.h"
#include "server/config/config_catalogue.h"
#include "server/config/config_sources.h"
#include "server/config/stores.h"
#include "server/observe/log_line.h"
#include "server/rpc/rpc_server.h"
#include "server/service/planning_service.h"

namespace stowage {

// What may change while a server runs (live_config.h).
struct LiveConfig {
  LogLevel log_level = LogLevel::kInfo;
  PlanningLimits limits;
};
// Of flags that have been checked.
LiveConfig LiveConfigFromFlags();

struct ServerConfig {
  RpcServerOptions rpc;  // whoever starts the server sets log, audit and authenticator
  AuthOptions auth;
  LogLevel log_level = LogLevel::kInfo;
  std::string metrics_listen;  // empty: no endpoint
  PlanningOptions planning;
  StoreConfig store;
  CatalogueConfig catalogue;
  std::string audit_log;      // empty: none
  std::string otlp_endpoint;  // where spans go; empty: nowhere
  std::string otlp_ca;        // the file that says whom to trust there; empty: none
  std::chrono::nanoseconds drain_timeout{};
};

// The flags' values, checked, and the files that they name. INVALID_ARGUMENT that names flag, value
// and rule, and never what is in a file.
absl::StatusOr<ServerConfig> ConfigFromFlags(const ConfigSources& sources);

// What its parts may take of memory together: tables of solves, plans in memory, and requests as they
// come, are converted and kept.
Bytes PlannedMemory(const ServerConfig& config);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_CONFIG_H_
