#include "server/config/config_flags.h"

#include "absl/flags/flag.h"

ABSL_FLAG(bool, version, false, "prints version and build, and ends");
ABSL_FLAG(
    bool, check_config, false,
    "checks the whole configuration, prints it as a configuration file and ends: code 0, or 2 "
    "when something is wrong; opens no port and changes nothing");
ABSL_FLAG(bool, export_decisions, false,
          "prints what administrators have decided, from the file of decisions, and ends; a server "
          "may run on it meanwhile");
ABSL_FLAG(
    std::string, import_decisions, "",
    "file that --export_decisions has printed: takes its decisions into the file of decisions "
    "and ends; no server may run on it");
ABSL_FLAG(std::string, config, "",
          "a file of lines NAME = VALUE, the names those of these flags; the environment "
          "(STOWAGED_ and the name in capitals) goes before it, the command line before both");

ABSL_FLAG(std::string, listen, "127.0.0.1:7070",
          "address of the service: HOST:PORT (port 0 for any) or unix:PATH");
ABSL_FLAG(std::string, metrics_listen, "127.0.0.1:7071",
          "address of the Prometheus endpoint, HOST:PORT; empty disables it");
ABSL_FLAG(std::string, tls_cert, "", "file of the server's certificate chain, PEM; turns TLS on");
ABSL_FLAG(std::string, tls_key, "", "file of its private key, PEM without a passphrase");
ABSL_FLAG(
    std::string, tls_client_ca, "",
    "file of the authorities of clients' certificates, PEM; without --token_file every client "
    "must have one");
ABSL_FLAG(std::vector<std::string>, allow_san, {},
          "names that clients' certificates may have, commas between: DNS (first label may be *), "
          "URI, IP address, or * for every certificate; planners of no tenant");
ABSL_FLAG(std::string, identities_file, "",
          "file of lines NAME TENANT ROLE [CALLED]: names as in --allow_san, and who they are");
ABSL_FLAG(
    std::string, token_file, "",
    "file of lines TOKEN TENANT ROLE [CALLED], TOKEN plain or sha256:HEX: callers must bear one");
ABSL_FLAG(absl::Duration, reload_interval, absl::Seconds(10),
          "how often certificates, tokens and identities are read again");
ABSL_FLAG(bool, insecure_network, false,
          "allows an address that others reach though callers are not known or the network can "
          "listen");
ABSL_FLAG(std::string, unix_socket_mode, "0600",
          "permissions of the socket of unix:PATH, octal; who may write it may call");
ABSL_FLAG(
    absl::Duration, max_connection_age, absl::Minutes(30),
    "after about this time a connection takes no new calls, so that clients find servers that "
    "came later; open calls go on; 0 for never");
ABSL_FLAG(std::string, log_level, "info",
          "least level that is logged: debug, info, warning, error");
ABSL_FLAG(int, solver_threads, 0, "threads that solve; 0 for one per processor");
ABSL_FLAG(int64_t, queue_limit, 256, "solves that may wait for a thread; more are refused");
ABSL_FLAG(int64_t, solver_memory_bytes, int64_t{4} << 30,
          "memory for the tables of all solver threads together, in bytes");
ABSL_FLAG(absl::Duration, max_solve_time, absl::Minutes(10),
          "how long a solve may take, queue included, for callers without a deadline");
ABSL_FLAG(
    absl::Duration, max_deadline, absl::Minutes(30),
    "how long a caller may have a solve go on, queue included; a later deadline counts as this");
ABSL_FLAG(int64_t, max_open_calls, 10000,
          "most calls of ComputePlan, WatchPlan, GetFrontier and FitBatch open at once, those that "
          "share a solve included");
ABSL_FLAG(int64_t, request_bytes, int64_t{256} << 20,
          "most bytes of all requests for plans open at once, as they came, of which memory takes "
          "about four times as much; gRPC may have twice that for what comes and goes");
ABSL_FLAG(int64_t, request_reserve_bytes, int64_t{4} << 20,
          "bytes beside those that only reports and administration may have");
ABSL_FLAG(int, lookup_threads, 4, "threads that look plans up in a store that must be waited for");
ABSL_FLAG(int, conversion_threads, 2,
          "threads that convert large requests; as many judge plans for those who watch a solve");
ABSL_FLAG(int, admin_threads, 4, "threads that list, pin, delete, explain and take reports");
ABSL_FLAG(
    double, tenant_share, 0.5,
    "share of queues, threads, open calls and bytes of requests that one tenant may take, or one "
    "caller without a tenant, in (0, 1]; where nobody is asked who they are, all may take all");
ABSL_FLAG(int64_t, cache_bytes, int64_t{256} << 20, "memory for cached plans, in bytes");
ABSL_FLAG(
    std::string, store, "sqlite",
    "where plans are kept beside memory: sqlite:PATH, a file of this server alone; sqlite for "
    "plans.db in $STATE_DIRECTORY, else $XDG_STATE_HOME/stowage, else ~/.local/state/stowage; or "
    "memory for nowhere");
ABSL_FLAG(int64_t, sqlite_bytes, int64_t{1} << 30, "most bytes of plans in that file");
ABSL_FLAG(
    std::string, decisions_file, "",
    "where pins, roll-backs, freezes and deletions are kept, a file of this server alone; empty "
    "for decisions.db beside plans.db, PATH.decisions for --store=sqlite:PATH, nowhere for memory");
ABSL_FLAG(
    std::string, redis, "",
    "a Redis that servers share, behind memory and file: HOST:PORT, a socket's /PATH, or "
    "redis://[[USER][:PASSWORD]@]HOST[:PORT][/DATABASE], rediss:// for TLS, or "
    "redis+sentinel://[[USER][:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...]/PRIMARY[/DATABASE], or "
    "redis+cluster://[[USER][:PASSWORD]@]HOST[:PORT][,HOST[:PORT]...]; empty for none");
ABSL_FLAG(std::string, redis_user, "", "user of it that the password is of; empty for the default");
ABSL_FLAG(std::string, redis_password_file, "", "file that holds its password");
ABSL_FLAG(std::string, redis_sentinel_user, "",
          "user of its sentinels that their password is of; empty for the default");
ABSL_FLAG(std::string, redis_sentinel_password_file, "",
          "file that holds its sentinels' password; empty for none");
ABSL_FLAG(std::string, redis_ca, "",
          "PEM file of authorities of its certificate, with rediss://; empty for the system's");
ABSL_FLAG(std::string, redis_cert, "",
          "PEM file of this server's certificate for it; empty for none");
ABSL_FLAG(std::string, redis_key, "", "PEM file of that one's private key");
ABSL_FLAG(std::string, redis_server_name, "",
          "name or address that its certificate must be for, with rediss://; empty for its host");
ABSL_FLAG(
    std::string, entry_key_file, "",
    "file of secret keys, a line of 64 hexadecimal digits each: what servers share in Redis is "
    "sealed under the first and taken under any of them alone; empty for none");
ABSL_FLAG(absl::Duration, redis_timeout, absl::Milliseconds(50),
          "how long it may not answer; bytes that move have 8 MiB/s beside that");
ABSL_FLAG(absl::Duration, redis_ttl, absl::Hours(24 * 14),
          "how long it keeps an entry that nobody looks up");
ABSL_FLAG(std::string, redis_prefix, "stowage",
          "beginning of all keys in it: servers that share plans have the same");
ABSL_FLAG(
    std::string, decisions_redis, "",
    "a durable Redis that servers of --redis exchange pins, roll-backs, freezes and deletions in, "
    "an address as there; it must have appendonly yes, appendfsync always, "
    "no-appendfsync-on-rewrite no and maxmemory-policy noeviction; empty for --redis itself");
ABSL_FLAG(std::string, decisions_redis_user, "",
          "user of that one that the password is of; empty for the default");
ABSL_FLAG(std::string, decisions_redis_password_file, "", "file that holds its password");
ABSL_FLAG(std::string, decisions_redis_sentinel_user, "",
          "user of its sentinels that their password is of; empty for the default");
ABSL_FLAG(std::string, decisions_redis_sentinel_password_file, "",
          "file that holds its sentinels' password; empty for none");
ABSL_FLAG(std::string, decisions_redis_ca, "",
          "PEM file of authorities of its certificate, with rediss://; empty for the system's");
ABSL_FLAG(std::string, decisions_redis_cert, "",
          "PEM file of this server's certificate for it; empty for none");
ABSL_FLAG(std::string, decisions_redis_key, "", "PEM file of that one's private key");
ABSL_FLAG(std::string, decisions_redis_server_name, "",
          "name or address that its certificate must be for, with rediss://; empty for its host");
ABSL_FLAG(absl::Duration, decisions_redis_timeout, absl::Milliseconds(500),
          "how long it may not answer, and so how long the sync of its disk may take");
ABSL_FLAG(std::string, catalogue, "",
          "folder of plans that were solved beforehand, put into the store at start where it has "
          "none; empty for none");
ABSL_FLAG(std::string, catalogue_environments, "",
          "file of lines kind=KIND device=DEVICE ...: the environments of jobs that the plans of "
          "--catalogue are for, see `stowage catalogue environment`");
ABSL_FLAG(
    std::string, audit_log, "",
    "file of one JSON line for each plan handed out, report and change of a cached plan; empty "
    "for none");
ABSL_FLAG(
    std::string, otlp_endpoint, "",
    "collector of OpenTelemetry that traces of calls go to, OTLP over gRPC: HOST:PORT or unix:PATH "
    "without TLS, https://HOST:PORT with it; empty for none");
ABSL_FLAG(std::string, otlp_ca, "",
          "PEM file of the authorities of the collector's certificate; empty for those that gRPC "
          "knows");
ABSL_FLAG(double, trace_share, 0.01,
          "share of calls without a traceparent that begin a trace, in [0, 1]; callers who send "
          "one say themselves whether theirs is traced");
ABSL_FLAG(int64_t, max_message_bytes, int64_t{16} << 20, "largest request or answer, in bytes");
ABSL_FLAG(int64_t, max_stages, 10000, "most stages of a chain");
ABSL_FLAG(int64_t, max_vertices, 20000, "most vertices of a graph");
ABSL_FLAG(
    absl::Duration, drain_timeout, absl::Seconds(30),
    "how long SIGTERM waits for open calls, as \"30s\" or \"500ms\"; stopping solves, handing "
    "answers over and closing endpoints may take 3 s more");

namespace stowage {

const std::vector<std::string>& FlagNames() {
  static const auto* const kNames =
      new std::vector<std::string>{"version",
                                   "check_config",
                                   "export_decisions",
                                   "import_decisions",
                                   "config",
                                   "listen",
                                   "metrics_listen",
                                   "tls_cert",
                                   "tls_key",
                                   "tls_client_ca",
                                   "allow_san",
                                   "identities_file",
                                   "token_file",
                                   "reload_interval",
                                   "insecure_network",
                                   "unix_socket_mode",
                                   "max_connection_age",
                                   "log_level",
                                   "solver_threads",
                                   "queue_limit",
                                   "solver_memory_bytes",
                                   "max_solve_time",
                                   "max_deadline",
                                   "max_open_calls",
                                   "request_bytes",
                                   "request_reserve_bytes",
                                   "lookup_threads",
                                   "conversion_threads",
                                   "admin_threads",
                                   "tenant_share",
                                   "cache_bytes",
                                   "store",
                                   "sqlite_bytes",
                                   "decisions_file",
                                   "redis",
                                   "redis_user",
                                   "redis_password_file",
                                   "redis_sentinel_user",
                                   "redis_sentinel_password_file",
                                   "redis_ca",
                                   "redis_cert",
                                   "redis_key",
                                   "redis_server_name",
                                   "entry_key_file",
                                   "redis_timeout",
                                   "redis_ttl",
                                   "redis_prefix",
                                   "decisions_redis",
                                   "decisions_redis_user",
                                   "decisions_redis_password_file",
                                   "decisions_redis_sentinel_user",
                                   "decisions_redis_sentinel_password_file",
                                   "decisions_redis_ca",
                                   "decisions_redis_cert",
                                   "decisions_redis_key",
                                   "decisions_redis_server_name",
                                   "decisions_redis_timeout",
                                   "catalogue",
                                   "catalogue_environments",
                                   "audit_log",
                                   "otlp_endpoint",
                                   "otlp_ca",
                                   "trace_share",
                                   "max_message_bytes",
                                   "max_stages",
                                   "max_vertices",
                                   "drain_timeout"};
  return *kNames;
}

}  // namespace stowage
