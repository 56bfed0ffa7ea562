// The load generator of the service: see README.md.
#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "solvers/base/flag_parser.h"
#include "tests/bench/load/adversaries.h"
#include "tests/bench/load/crash_load.h"
#include "tests/bench/load/echo_server.h"
#include "tests/bench/load/fault_tally.h"
#include "tests/bench/load/herd_load.h"
#include "tests/bench/load/hit_load.h"
#include "tests/bench/load/mixed_load.h"
#include "tests/bench/load/redis_faults.h"
#include "tests/bench/load/routing_load.h"
#include "tests/bench/load/sentinel_faults.h"
#include "tests/bench/load/slow_socket.h"
#include "tests/server/store/redis_server.h"
#include "tests/support/temporary_folder.h"

ABSL_FLAG(std::string, scenario, "hits",
          "hits, herd, routing, mixed, crashes, adversaries, lookups or drain");
ABSL_FLAG(std::string, stowaged, STOWAGED_BINARY, "the service's binary");
ABSL_FLAG(std::string, flags, "", "more flags for it, separated by spaces");
ABSL_FLAG(int, stages, 50, "hits, herd, routing: stages of the chain");
ABSL_FLAG(int, keys, 1, "hits: plans asked for in turn");
ABSL_FLAG(int, rounds, 20, "hits: rounds that alternate between echo and service");
ABSL_FLAG(int, calls, 500, "hits: calls one after the other in a round");
ABSL_FLAG(double, burst_seconds, 1, "hits: seconds with 16 in flight in a round");
ABSL_FLAG(int, callers, 1000, "herd: callers at once");
ABSL_FLAG(int, connections, 8, "herd: connections to each replica");
ABSL_FLAG(int, replicas, 1, "herd, routing: servers that the callers are spread over");
ABSL_FLAG(int, networks, 200, "routing: networks whose jobs ask");
ABSL_FLAG(double, seconds, 600, "mixed, crashes, adversaries, lookups: how long");
ABSL_FLAG(int, filling, 700,
          "mixed: plans asked for first, so that what grows later is a leak; the cache of 4 MiB "
          "holds some "
          "500. 0.1 s each");
ABSL_FLAG(int64_t, seed, 1, "mixed, crashes: of what is drawn");
ABSL_FLAG(double, pause_seconds, 3, "crashes: between two faults");
ABSL_FLAG(double, calm_seconds, 30, "crashes: without faults, before all replicas are looked at");
ABSL_FLAG(
    bool, sentinel, false,
    "crashes: the Redis has a replica and three sentinels, and fails over; instead of --redis");
ABSL_FLAG(std::vector<std::string>, allow_skipped, {},
          "crashes: kinds of faults that need not come (kill, stop, disk, clock, redis, failover, "
          "decisions); without the others it fails, and says why they did not");
ABSL_FLAG(std::string, faketime, "",
          "crashes: the library of libfaketime, for clocks that jump; empty for none");
ABSL_FLAG(std::vector<std::string>, adversaries,
          std::vector<std::string>({"stuck", "lists", "flood", "open"}),
          "adversaries: who acts beside the mixed load every other turn: stuck, lists, flood, "
          "open, decisions");
ABSL_FLAG(double, turn_seconds, 5, "adversaries, lookups: how long a turn is");
ABSL_FLAG(int, redis_delay_ms, 5, "adversaries, lookups: how late --redis answers");
ABSL_FLAG(bool, redis, false,
          "a redis-server of its own for all replicas; mixed breaks and mends it every 5 s, "
          "crashes now and then");
ABSL_FLAG(bool, decisions_redis, false,
          "crashes: a durable redis-server of its own for what administrators decide, which is "
          "killed and frozen; servers lose their disks. Beside --redis or --sentinel");
ABSL_FLAG(int64_t, echo, 0, "internal: serve as the echo with replies of so many bytes");

namespace stowage {
namespace {

// `flags` of the scenario, over which those of the command line win.
std::vector<std::string> Command(const std::unique_ptr<RedisFaults>& redis,
                                 const std::vector<std::string>& flags = {}) {
  std::vector<std::string> command = {absl::GetFlag(FLAGS_stowaged), "--store=memory",
                                      "--listen=127.0.0.1:0", "--metrics_listen=127.0.0.1:0"};
  command.insert(command.end(), flags.begin(), flags.end());
  for (const auto& flag : absl::StrSplit(absl::GetFlag(FLAGS_flags), ' ', absl::SkipEmpty())) {
    command.emplace_back(flag);
  }
  if (redis) command.push_back(redis->flag());
  return command;
}

std::string OwnBinary() {
  char path[PATH_MAX] = {};
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  return std::string(path, static_cast<size_t>(length > 0 ? length : 0));
}

// The mixed load of one tenant, or its lookups alone; with --redis, of a server whose shared store is slow.
absl::Status RunAdversaries(const std::set<std::string>& kinds, bool far_only) {
  MixedOptions options;
  options.adversaries = kinds;
  if (absl::Status known = CheckAdversaries(options.adversaries); !known.ok()) return known;
  const TemporaryFolder folder;
  std::ofstream(folder / "tokens") << AdversaryTokens();
  std::unique_ptr<testing::RedisServer> redis;
  std::unique_ptr<SlowSocket> slow;
  // Of lookups alone memory answers few.
  const char* const cache = far_only ? "--cache_bytes=1048576" : "--cache_bytes=4194304";
  if (far_only) options.in_flight = 4;
  options.far_only = far_only;
  options.stowaged =
      Command(nullptr, {cache, "--request_bytes=67108864", "--token_file=" + folder / "tokens"});
  if (absl::GetFlag(FLAGS_redis)) {
    redis = std::make_unique<testing::RedisServer>();
    slow = std::make_unique<SlowSocket>(
        redis->address().host_or_path,
        std::chrono::milliseconds(absl::GetFlag(FLAGS_redis_delay_ms)));
    options.stowaged.push_back("--redis=" + slow->path());
    options.empty_store = [&redis] { redis->Ask({"FLUSHALL"}); };
  }
  options.seconds = absl::GetFlag(FLAGS_seconds);
  options.turn_seconds = absl::GetFlag(FLAGS_turn_seconds);
  options.filling = absl::GetFlag(FLAGS_filling);
  options.seed = static_cast<uint64_t>(absl::GetFlag(FLAGS_seed));
  return RunMixed(options);
}

absl::Status RunRoutingWays() {
  testing::RedisServer redis;
  RoutingOptions options;
  options.stowaged = Command(nullptr, {"--redis=" + redis.address().host_or_path});
  options.empty_store = [&redis] { redis.Ask({"FLUSHALL"}); };
  options.replicas = std::max(absl::GetFlag(FLAGS_replicas), 3);
  options.networks = absl::GetFlag(FLAGS_networks);
  options.stages = absl::GetFlag(FLAGS_stages);
  return RunRouting(options);
}

// What the replicas share, and how it breaks, as far as flags and machine have it.
void ShareRedis(RedisFaults* redis, CrashOptions* options) {
  options->stowaged.push_back(redis->flag());
  options->break_shared = [redis] {
    redis->Next();
    return absl::OkStatus();
  };
  options->mend_shared = [redis] {
    redis->Mend();
    return absl::OkStatus();
  };
  options->empty_shared = [redis] {
    redis->Empty();
    return absl::OkStatus();
  };
  options->cannot["failover"] = "without --sentinel";
}

void ShareSentinels(SentinelFaults* sentinels, CrashOptions* options) {
  options->stowaged.push_back(sentinels->flag());
  options->break_shared = [sentinels] { return sentinels->Next(); };
  options->fail_over = [sentinels] { return sentinels->FailOver(); };
  options->mend_shared = [sentinels] { return sentinels->AwaitWhole(); };
  options->empty_shared = [sentinels] { return sentinels->Empty(); };
}

void ShareNothing(const std::string& why, CrashOptions* options) {
  for (const char* kind : {"redis", "failover", "decisions"}) options->cannot[kind] = why;
}

void ShareDecisions(DurableRedisFaults* decisions, CrashOptions* options) {
  options->stowaged.push_back(decisions->flag());
  options->break_decisions = [decisions] { decisions->Next(); };
}

CrashOptions CrashOptionsOfFlags() {
  const std::vector<std::string> allowed = absl::GetFlag(FLAGS_allow_skipped);
  CrashOptions options;
  options.allow_skipped = {allowed.begin(), allowed.end()};
  if (!absl::GetFlag(FLAGS_decisions_redis)) options.left_out = {"decisions"};
  // Small, so that they are full soon, and memory and disk stay as they are.
  options.stowaged = Command(nullptr, {"--cache_bytes=4194304", "--sqlite_bytes=16777216"});
  options.replicas = std::max(absl::GetFlag(FLAGS_replicas), 2);
  options.seconds = absl::GetFlag(FLAGS_seconds);
  options.pause_seconds = absl::GetFlag(FLAGS_pause_seconds);
  options.calm_seconds = absl::GetFlag(FLAGS_calm_seconds);
  options.seed = static_cast<uint64_t>(absl::GetFlag(FLAGS_seed));
  options.faketime = absl::GetFlag(FLAGS_faketime);
  return options;
}

absl::Status RunCrashLoad() {
  CrashOptions options = CrashOptionsOfFlags();
  if (absl::Status known = CheckFaultNames(options.allow_skipped); !known.ok()) return known;
  std::unique_ptr<RedisFaults> redis;
  std::unique_ptr<SentinelFaults> sentinels;
  std::unique_ptr<DurableRedisFaults> decisions;
  if (!absl::GetFlag(FLAGS_redis) && !absl::GetFlag(FLAGS_sentinel)) {
    ShareNothing("without --redis or --sentinel", &options);
  } else if (!testing::RedisServer::IsInstalled()) {
    ShareNothing("no redis-server is installed (deploy/setup --tests does that)", &options);
  } else if (absl::GetFlag(FLAGS_sentinel)) {
    sentinels = std::make_unique<SentinelFaults>();
    if (absl::Status whole = sentinels->AwaitWhole(); !whole.ok()) return whole;
    ShareSentinels(sentinels.get(), &options);
  } else {
    redis = std::make_unique<RedisFaults>();
    ShareRedis(redis.get(), &options);
  }
  if (absl::GetFlag(FLAGS_decisions_redis) && options.break_shared) {
    decisions = std::make_unique<DurableRedisFaults>();
    ShareDecisions(decisions.get(), &options);
  }
  return RunCrashes(options);
}

absl::Status Run(const std::string& scenario) {
  if (scenario == "crashes") return RunCrashLoad();
  std::unique_ptr<RedisFaults> redis;
  if (absl::GetFlag(FLAGS_redis)) redis = std::make_unique<RedisFaults>();
  if (scenario == "hits") {
    HitOptions options{OwnBinary(), Command(redis)};
    options.stages = absl::GetFlag(FLAGS_stages);
    options.keys = absl::GetFlag(FLAGS_keys);
    options.rounds = absl::GetFlag(FLAGS_rounds);
    options.calls_per_round = absl::GetFlag(FLAGS_calls);
    options.seconds_per_burst = absl::GetFlag(FLAGS_burst_seconds);
    return RunHits(options);
  }
  if (scenario == "herd") {
    HerdOptions options;
    options.stowaged.assign(static_cast<size_t>(absl::GetFlag(FLAGS_replicas)), Command(redis));
    options.callers = absl::GetFlag(FLAGS_callers);
    options.connections = absl::GetFlag(FLAGS_connections);
    options.stages = absl::GetFlag(FLAGS_stages);
    return RunHerd(options);
  }
  if (scenario == "mixed") {
    MixedOptions options;
    // Small, so that it can be filled first.
    options.stowaged = Command(redis, {"--cache_bytes=4194304"});
    if (redis) options.fault = [&redis](double) { redis->Next(); };
    options.seconds = absl::GetFlag(FLAGS_seconds);
    options.filling = absl::GetFlag(FLAGS_filling);
    options.seed = static_cast<uint64_t>(absl::GetFlag(FLAGS_seed));
    return RunMixed(options);
  }
  if (scenario == "adversaries") {
    const std::vector<std::string> kinds = absl::GetFlag(FLAGS_adversaries);
    return RunAdversaries({kinds.begin(), kinds.end()}, false);
  }
  if (scenario == "routing") return RunRoutingWays();
  if (scenario == "lookups") return RunAdversaries({"lists"}, true);
  if (scenario == "drain") return RunDrain(Command(redis, {"--drain_timeout=100s"}));
  return absl::InvalidArgumentError(
      "--scenario must be hits, herd, routing, mixed, crashes, adversaries, lookups or drain");
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = {
      "scenario",       "stowaged",    "flags",         "stages",         "keys",
      "rounds",         "calls",       "burst_seconds", "callers",        "connections",
      "replicas",       "seconds",     "filling",       "seed",           "redis",
      "echo",           "adversaries", "turn_seconds",  "redis_delay_ms", "pause_seconds",
      "calm_seconds",   "faketime",    "networks",      "sentinel",       "allow_skipped",
      "decisions_redis"};
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (help.ok() && *help) {
    std::printf("usage: service_load [flags]\n\n%s", FlagHelp(flags).c_str());
    return EXIT_SUCCESS;
  }
  if (help.ok() && absl::GetFlag(FLAGS_echo) > 0) {
    RunEchoServer(static_cast<size_t>(absl::GetFlag(FLAGS_echo)));
  }
  const absl::Status status = help.ok() ? Run(absl::GetFlag(FLAGS_scenario)) : help.status();
  if (status.ok()) return EXIT_SUCCESS;
  std::fprintf(stderr, "service_load: %s\n", std::string(status.message()).c_str());
  return EXIT_FAILURE;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
