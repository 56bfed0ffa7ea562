// What a lookup in the Redis tier costs, against a plain GET of as many bytes by hiredis, turn about
// in one run, over TCP on loopback. Names say stages. Counters are medians in microseconds of wall
// time: `raw` the GET, `get` the store's (the time), `decode` what of it is unsealing, decoding and
// replaying, `put`; `ratio` of get to raw; `KB` the entry's bytes. Starts a redis-server of its own.
#include <benchmark/benchmark.h>
#include <hiredis/hiredis.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "server/entries/entry_codec.h"
#include "server/store/redis_plan_store.h"
#include "server/store/redis_pool.h"
#include "solvers/schedule/instance.h"
#include "tests/bench/bench_chains.h"
#include "tests/server/store/redis_server.h"

namespace {

using Clock = std::chrono::steady_clock;
using stowage::DecodeEntry;
using stowage::EncodeEntry;
using stowage::PlanEntry;
using stowage::PlanKey;
using stowage::testing::FreePort;
using stowage::testing::RedisServer;

constexpr char kRawKey[] = "raw";

// One plan of a chain that keeps everything.
std::shared_ptr<PlanEntry> EntryOf(int stages) {
  auto entry = std::make_shared<PlanEntry>();
  entry->canonical = std::to_string(stages);
  entry->reference = std::make_shared<const stowage::Instance>(
      stowage::Instance{stowage::testing::BenchRandomChain(stages, 1), std::nullopt});
  entry->store_all = *entry->reference->store_all();
  stowage::Plan plan;
  plan.status = stowage::PlanStatus::kFound;
  plan.budget = entry->store_all.peak;
  plan.schedule = entry->reference->store_all_schedule();
  plan.prediction = entry->store_all;
  plan.bounds.store_all_makespan = entry->store_all.makespan;
  plan.bounds.store_all_peak = entry->store_all.peak;
  entry->plans.push_back({std::make_shared<const stowage::Plan>(plan)});
  return entry;
}

double Microseconds(const std::function<void()>& call) {
  const Clock::time_point start = Clock::now();
  call();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void Require(bool holds) {
  if (!holds) std::abort();
}

void RawGet(redisContext* raw, size_t size) {
  auto* reply = static_cast<redisReply*>(redisCommand(raw, "GET %s", kRawKey));
  Require(reply != nullptr && static_cast<size_t>(reply->len) == size);
  freeReplyObject(reply);
}

void Lookup(benchmark::State& state) {
  const int port = FreePort();
  RedisServer server({"--port", std::to_string(port)});
  stowage::RedisOptions options;
  options.address.host_or_path = "127.0.0.1";
  options.address.port = port;
  options.timeout = std::chrono::seconds(10);  // a busy machine is no Redis that is away
  stowage::NoMetrics metrics;
  stowage::RedisPlanStore store({}, std::make_shared<stowage::RedisPool>(options), &metrics);
  redisContext* raw = redisConnect("127.0.0.1", port);

  const auto entry = EntryOf(static_cast<int>(state.range(0)));
  const PlanKey key{stowage::kEncodingVersion, stowage::Sha256(entry->canonical)};
  const std::string bytes = EncodeEntry(*entry);
  server.Ask({"SET", kRawKey, bytes});
  std::vector<double> raws, gets, decodes, puts;
  for (auto _ : state) {
    ++entry->generation;
    const auto next = std::make_shared<const PlanEntry>(*entry);
    puts.push_back(Microseconds([&] { Require(store.Put(key, next).ok()); }));
    raws.push_back(Microseconds([&] { RawGet(raw, bytes.size()); }));
    gets.push_back(
        Microseconds([&] { Require(store.Get(key, stowage::Access::kLookup) != nullptr); }));
    decodes.push_back(Microseconds([&] { Require(DecodeEntry(key, bytes).ok()); }));
    state.SetIterationTime(gets.back() * 1e-6);
  }
  redisFree(raw);
  state.counters["raw"] = Median(raws);
  state.counters["get"] = Median(gets);
  state.counters["decode"] = Median(decodes);
  state.counters["put"] = Median(puts);
  state.counters["ratio"] = Median(gets) / Median(raws);
  state.counters["KB"] = static_cast<double>(bytes.size()) / 1000;
}

BENCHMARK(Lookup)->Arg(10)->Arg(50)->Arg(200)->Arg(1000)->UseManualTime()->Unit(
    benchmark::kMicrosecond);

}  // namespace

int main(int argc, char** argv) {
  if (!RedisServer::IsInstalled()) {
    std::cerr << "redis_store_bench: no redis-server is installed\n";
    return 77;
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
