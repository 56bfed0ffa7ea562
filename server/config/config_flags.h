// The flags of stowaged. Only server/config*.cc read them; what they mean is in operating.md.
#ifndef STOWAGE_SERVER_CONFIG_CONFIG_FLAGS_H_
#define STOWAGE_SERVER_CONFIG_CONFIG_FLAGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/time/time.h"

// Of the command line alone.
ABSL_DECLARE_FLAG(bool, version);
ABSL_DECLARE_FLAG(bool, check_config);
ABSL_DECLARE_FLAG(bool, export_decisions);
ABSL_DECLARE_FLAG(std::string, import_decisions);
// Not in the file that it names.
ABSL_DECLARE_FLAG(std::string, config);

ABSL_DECLARE_FLAG(std::string, listen);
ABSL_DECLARE_FLAG(std::string, metrics_listen);
ABSL_DECLARE_FLAG(std::string, tls_cert);
ABSL_DECLARE_FLAG(std::string, tls_key);
ABSL_DECLARE_FLAG(std::string, tls_client_ca);
ABSL_DECLARE_FLAG(std::vector<std::string>, allow_san);
ABSL_DECLARE_FLAG(std::string, identities_file);
ABSL_DECLARE_FLAG(std::string, token_file);
ABSL_DECLARE_FLAG(absl::Duration, reload_interval);
ABSL_DECLARE_FLAG(bool, insecure_network);
ABSL_DECLARE_FLAG(std::string, unix_socket_mode);
ABSL_DECLARE_FLAG(absl::Duration, max_connection_age);
ABSL_DECLARE_FLAG(std::string, log_level);
ABSL_DECLARE_FLAG(int, solver_threads);
ABSL_DECLARE_FLAG(int64_t, queue_limit);
ABSL_DECLARE_FLAG(int64_t, solver_memory_bytes);
ABSL_DECLARE_FLAG(absl::Duration, max_solve_time);
ABSL_DECLARE_FLAG(absl::Duration, max_deadline);
ABSL_DECLARE_FLAG(int64_t, max_open_calls);
ABSL_DECLARE_FLAG(int64_t, request_bytes);
ABSL_DECLARE_FLAG(int64_t, request_reserve_bytes);
ABSL_DECLARE_FLAG(int, lookup_threads);
ABSL_DECLARE_FLAG(int, conversion_threads);
ABSL_DECLARE_FLAG(int, admin_threads);
ABSL_DECLARE_FLAG(double, tenant_share);
ABSL_DECLARE_FLAG(int64_t, cache_bytes);
ABSL_DECLARE_FLAG(std::string, store);
ABSL_DECLARE_FLAG(int64_t, sqlite_bytes);
ABSL_DECLARE_FLAG(std::string, decisions_file);
ABSL_DECLARE_FLAG(std::string, redis);
ABSL_DECLARE_FLAG(std::string, redis_user);
ABSL_DECLARE_FLAG(std::string, redis_password_file);
ABSL_DECLARE_FLAG(std::string, redis_sentinel_user);
ABSL_DECLARE_FLAG(std::string, redis_sentinel_password_file);
ABSL_DECLARE_FLAG(std::string, redis_ca);
ABSL_DECLARE_FLAG(std::string, redis_cert);
ABSL_DECLARE_FLAG(std::string, redis_key);
ABSL_DECLARE_FLAG(std::string, redis_server_name);
ABSL_DECLARE_FLAG(std::string, entry_key_file);
ABSL_DECLARE_FLAG(absl::Duration, redis_timeout);
ABSL_DECLARE_FLAG(absl::Duration, redis_ttl);
ABSL_DECLARE_FLAG(std::string, redis_prefix);
ABSL_DECLARE_FLAG(std::string, decisions_redis);
ABSL_DECLARE_FLAG(std::string, decisions_redis_user);
ABSL_DECLARE_FLAG(std::string, decisions_redis_password_file);
ABSL_DECLARE_FLAG(std::string, decisions_redis_sentinel_user);
ABSL_DECLARE_FLAG(std::string, decisions_redis_sentinel_password_file);
ABSL_DECLARE_FLAG(std::string, decisions_redis_ca);
ABSL_DECLARE_FLAG(std::string, decisions_redis_cert);
ABSL_DECLARE_FLAG(std::string, decisions_redis_key);
ABSL_DECLARE_FLAG(std::string, decisions_redis_server_name);
ABSL_DECLARE_FLAG(absl::Duration, decisions_redis_timeout);
ABSL_DECLARE_FLAG(std::string, catalogue);
ABSL_DECLARE_FLAG(std::string, catalogue_environments);
ABSL_DECLARE_FLAG(std::string, audit_log);
ABSL_DECLARE_FLAG(std::string, otlp_endpoint);
ABSL_DECLARE_FLAG(std::string, otlp_ca);
ABSL_DECLARE_FLAG(double, trace_share);
ABSL_DECLARE_FLAG(int64_t, max_message_bytes);
ABSL_DECLARE_FLAG(int64_t, max_stages);
ABSL_DECLARE_FLAG(int64_t, max_vertices);
ABSL_DECLARE_FLAG(absl::Duration, drain_timeout);

namespace stowage {

// All of them, in the order --help lists them.
const std::vector<std::string>& FlagNames();

}  // namespace stowage

#endif  // STOWAGE_SERVER_CONFIG_CONFIG_FLAGS_H_
