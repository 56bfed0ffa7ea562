// A Redis cluster of three servers, and a replica: what every store must do, and what happens while keys move and
// servers die.
#include "server/store/redis_cluster.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "server/decisions/shared_decisions.h"
#include "server/store/leased_solve.h"
#include "server/store/memory_plan_store.h"
#include "server/store/name_lookup.h"
#include "server/store/redis_plan_store.h"
#include "server/store/redis_reported_steps.h"
#include "server/store/redis_solve_lease.h"
#include "server/store/tiered_plan_store.h"
#include "tests/server/store/plan_store_conformance.h"
#include "tests/server/store/redis_server.h"
#include "tests/server/support/counting_metrics.h"

namespace stowage::testing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr int kServers = 3;
constexpr int kSlots = 16384;

const bool kSkips = (SkipWithoutRedis(), true);

bool Await(const std::function<bool()>& holds) {
  const Clock::time_point patience = Clock::now() + std::chrono::seconds(40);
  while (!holds()) {
    if (Clock::now() > patience) return false;
    std::this_thread::sleep_for(milliseconds(20));
  }
  return true;
}

std::vector<std::string> OfACluster(int port, int bus_port, const char* node_timeout_ms) {
  return ReplicatedAt(port, {"--cluster-enabled", "yes", "--cluster-node-timeout", node_timeout_ms,
                             "--cluster-port", std::to_string(bus_port)});
}

// Three servers with a third of the slots each; the first one has a replica if so said.
class Cluster {
 public:
  explicit Cluster(bool has_replica) {
    for (int i = 0; i < kServers + (has_replica ? 1 : 0); ++i) {
      ports.push_back(FreePort());
      buses_.push_back(FreePort());
      servers.push_back(std::make_unique<RedisServer>(
          OfACluster(ports[i], buses_[i],
                     has_replica ? "1000" : "15000")));  // only one with a replica is to fail over
      ids.push_back(servers[i]->Ask({"CLUSTER", "MYID"}).text);
      servers[0]->Ask(
          {"CLUSTER", "MEET", "127.0.0.1", std::to_string(ports[i]), std::to_string(buses_[i])});
      if (i == kServers) continue;
      servers[i]->Ask({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
      servers[i]->Ask({"CLUSTER", "ADDSLOTSRANGE", std::to_string(kSlots * i / kServers),
                       std::to_string(kSlots * (i + 1) / kServers - 1)});
    }
    AwaitAll([](const RedisServer& server) {
      return server.Ask({"CLUSTER", "INFO"}).text.find("cluster_state:ok") != std::string::npos;
    });
    if (!has_replica) return;
    EXPECT_TRUE(Await([this] {
      return servers[kServers]->Ask({"CLUSTER", "REPLICATE", ids[0]}).text == "OK";
    }));
    EXPECT_TRUE(Await([this] { return servers[0]->Ask({"WAIT", "1", "1000"}).integer == 1; }));
    // All have heard of it, or none could vote for it.
    AwaitAll([this](const RedisServer& server) {
      return server.Ask({"CLUSTER", "REPLICAS", ids[0]}).list.size() == 1;
    });
  }

  RedisOptions options() const {
    RedisOptions options;
    for (const int port : ports) options.address.nodes.push_back({"127.0.0.1", port});
    options.timeout = std::chrono::seconds(2);
    options.breaker.longest_pause = milliseconds(200);
    return options;
  }
  std::shared_ptr<RedisCluster> Client() const { return std::make_shared<RedisCluster>(options()); }
  // Of the server that has it.
  int OwnerOf(const std::string& key) const { return RedisSlotOf(key) * kServers / kSlots; }

  std::vector<std::unique_ptr<RedisServer>> servers;
  std::vector<int> ports;
  std::vector<std::string> ids;

 private:
  void AwaitAll(const std::function<bool(const RedisServer&)>& holds) {
    for (const auto& server : servers) EXPECT_TRUE(Await([&] { return holds(*server); }));
  }

  std::vector<int> buses_;
};

// One for all tests that leave it as they found it.
Cluster* Shared() {
  static Cluster cluster(false);  // ends with the process
  return &cluster;
}

std::unique_ptr<PlanStore> EmptyCluster() {
  static NoMetrics no_metrics;
  if (!RedisServer::IsInstalled()) return nullptr;
  const auto client = Shared()->Client();
  EXPECT_TRUE(client->RunOnAll({{"FLUSHALL"}}).ok());
  return std::make_unique<RedisPlanStore>(RedisStoreOptions{}, client, &no_metrics);
}

std::unique_ptr<PlanStore> MemoryOverCluster() {
  return std::make_unique<TieredPlanStore>(std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
                                           EmptyCluster(), std::chrono::microseconds(1));
}

INSTANTIATE_TEST_SUITE_P(Stores, PlanStoreConformance,
                         ::testing::Values(StoreFactory{"Cluster", EmptyCluster, false},
                                           StoreFactory{"MemoryOverCluster", MemoryOverCluster,
                                                        false}),
                         [](const auto& store) { return store.param.name; });

TEST(RedisSlot, IsThatOfTheTag) {
  // Of Redis's cluster specification, and of CLUSTER KEYSLOT.
  EXPECT_EQ(RedisSlotOf("123456789"), 0x31C3);
  EXPECT_EQ(RedisSlotOf("{user1000}.following"), RedisSlotOf("user1000"));
  for (const std::string key :
       {"foo{}{bar}", "foo{{bar}}zap", "foo{bar}{zap}", "a{b", "", "x}y{"}) {
    EXPECT_EQ(RedisSlotOf(key), Shared()->servers[0]->Ask({"CLUSTER", "KEYSLOT", key}).integer)
        << key;
  }
}

TEST(RedisSlotMap, SaysWhetherAnySlotIsElsewhereThanWasKnown) {
  const RedisSlotMap::Place a{"a", 1}, b{"b", 1};
  RedisSlotMap map;
  EXPECT_EQ(map.PlaceOf(0), nullptr);
  const RedisSlotMap::Ranges at_a = {{0, {9, a}}, {20, {29, b}}};
  const RedisSlotMap::Ranges all_at_b = {{0, {9, b}}, {20, {29, b}}};
  EXPECT_FALSE(map.Learn(at_a)) << "nothing was known";
  EXPECT_EQ(map.Places(), (std::set<RedisSlotMap::Place>{a, b}));
  EXPECT_EQ(*map.PlaceOf(9), a);
  EXPECT_EQ(map.PlaceOf(10), nullptr);
  EXPECT_EQ(*map.PlaceOf(20), b);
  EXPECT_FALSE(map.Learn(at_a));
  EXPECT_TRUE(map.Learn(all_at_b));
  EXPECT_TRUE(map.Learn(at_a));
  map.Moved(9, b);
  EXPECT_EQ(*map.PlaceOf(9), b);
  EXPECT_EQ(*map.PlaceOf(8), a);
  // It came back before all servers had heard that it went.
  EXPECT_TRUE(map.Learn(at_a));
  EXPECT_EQ(*map.PlaceOf(9), a);
  EXPECT_FALSE(map.Learn(at_a));
  map.Moved(15, b);
  EXPECT_TRUE(map.Learn(at_a)) << "nobody has it any more";
}

TEST(RedisKeysOfACluster, AreTogetherForAPlanAndApartForPlans) {
  const RedisKeys keys("stowage", false, true);
  std::set<int> owners;
  std::set<int> parts;
  for (int i = 0; i < 200; ++i) {
    const PlanKey key = KeyOf(std::to_string(i));
    const int part = keys.PartOf(key);
    const int slot = RedisSlotOf(keys.Plan(key));
    EXPECT_EQ(RedisSlotOf(keys.Gone(key)), slot);
    EXPECT_EQ(RedisSlotOf(keys.Index("{us}", part)), slot);
    EXPECT_EQ(RedisSlotOf(keys.Index(std::nullopt, part)), slot);
    EXPECT_EQ(RedisSlotOf(keys.Decisions(key)), slot);
    EXPECT_EQ(RedisSlotOf(keys.DecisionMark("x", part)), slot);
    EXPECT_EQ(keys.Plan(key).rfind(keys.PlanPrefix(part), 0), 0u);
    EXPECT_EQ(keys.ParsePlan(keys.Plan(key)), key);
    EXPECT_FALSE(RedisKeys("stowage").ParsePlan(keys.Plan(key)).has_value());
    parts.insert(part);
    owners.insert(Shared()->OwnerOf(keys.Plan(key)));
  }
  EXPECT_EQ(parts.size(), static_cast<size_t>(keys.parts()));
  EXPECT_EQ(owners.size(), static_cast<size_t>(kServers));
}

class RedisClusterTest : public ::testing::Test {
 protected:
  RedisClusterTest() { EmptyCluster(); }

  const RedisKeys keys_{"stowage", false, true};
  CountingMetrics metrics_;
};

TEST_F(RedisClusterTest, IsFoundByAName) {
  NameLookup names([](const std::string&) { return NameLookup::Addresses{"127.0.0.1"}; });
  RedisOptions options = Shared()->options();
  options.address.nodes = {{"cluster.test", Shared()->ports[0]}};
  options.names = &names;
  const absl::Status found = RedisCluster(options).Ping();
  EXPECT_TRUE(found.ok()) << found;
}

TEST_F(RedisClusterTest, IsListedInPagesWhetherIndexedOrWalked) {
  const auto client = Shared()->Client();
  RedisPlanStore store({}, client, &metrics_);
  std::vector<PlanKey> all;
  for (int i = 0; i < 60; ++i) {
    const std::string name = std::to_string(i);
    ASSERT_TRUE(store.Put(KeyOf(name), EntryOf(name, 0, 1, i % 3 == 0 ? "us" : "them")).ok());
    all.push_back(KeyOf(name));
  }
  std::sort(all.begin(), all.end());
  for (int round = 0; round < 2; ++round) {  // walked, then by the indexes that the walks made
    std::vector<PlanKey> listed;
    std::optional<PlanKey> after;
    while (true) {
      const auto page = store.List(after, 7);
      ASSERT_TRUE(page.ok()) << page.status();
      listed.insert(listed.end(), page->begin(), page->end());
      if (page->size() < 7) break;
      after = page->back();
    }
    EXPECT_EQ(listed, all);
    EXPECT_EQ(store.ListOf("us", std::nullopt, 100)->size(), 20u);
  }
  EXPECT_GE(store.stats().entries, 60);
  EXPECT_GT(store.stats().charged, Bytes(0));
}

// Many callers of two servers ask the same at once.
TEST_F(RedisClusterTest, TwoServersSolveOnce) {
  for (const char* name : {"a", "b", "c", "d"}) {
    const SolveQuestion question{KeyOf(name), Bytes(100)};
    std::atomic<int> solves{0};
    const auto serve = [&] {
      const auto client = Shared()->Client();
      RedisSolveLease lease({}, client);
      RedisPlanStore store({}, client, &metrics_);
      LeasedSolve leased(LeasedSolveOptions{}, &lease, &metrics_);
      const auto look = [&] { return store.Get(question.key, Access::kUpdate) != nullptr; };
      std::vector<std::thread> callers;
      for (int c = 0; c < 4; ++c) {
        callers.emplace_back([&] {
          LeaseWait wait;
          Turn turn = leased.Take(question, look, &wait);
          for (; turn.turn == SolveTurn::kWait; turn = leased.Take(question, look, &wait)) {
            std::this_thread::sleep_for(wait.pause);
          }
          if (turn.turn == SolveTurn::kFound) return;
          ++solves;
          std::this_thread::sleep_for(milliseconds(50));
          EXPECT_TRUE(store.Put(question.key, EntryOf(name)).ok());
        });
      }
      for (std::thread& caller : callers) caller.join();
    };
    std::thread one(serve);
    std::thread two(serve);
    one.join();
    two.join();
    EXPECT_EQ(solves, 1) << name;
  }
}

TEST_F(RedisClusterTest, SharesDecisionsMarksAndSteps) {
  RedisDecisions decisions("stowage", Shared()->Client(), &metrics_);
  ASSERT_TRUE(decisions.Mark().ok());
  EXPECT_EQ(*decisions.IsMarked(), true);
  Decision decision;
  decision.stamp = 7;
  std::set<PlanKey> keys;
  for (int i = 0; i < 20; ++i) {
    const PlanKey key = KeyOf(std::to_string(i));
    ASSERT_TRUE(decisions.Tell(key, {decision}).ok());
    EXPECT_EQ(decisions.Heads(key)->size(), 1u);
    keys.insert(key);
  }
  const std::vector<PlanKey> all(keys.begin(), keys.end());
  EXPECT_EQ(*decisions.Keys(std::nullopt, 100, StopToken()), all);
  EXPECT_EQ(*decisions.Keys(all[4], 7, StopToken()),
            std::vector<PlanKey>(all.begin() + 5, all.begin() + 12));
  // One server alone loses what it has.
  Shared()->servers[1]->Ask({"FLUSHALL"});
  EXPECT_EQ(*decisions.IsMarked(), false);
  RedisReportedSteps steps(keys_, Shared()->Client());
  for (int i = 0; i < 20; ++i) {
    const ReportedPlan plan{KeyOf(std::to_string(i)), Bytes(1), 1, 1};
    EXPECT_EQ(steps.Raise(plan, 5), 0);
    EXPECT_EQ(steps.Raise(plan, 6), 5);
  }
}

// A slot moves while it is used: what is not there yet is asked of who will have it (ASK), then of who has it (MOVED).
TEST_F(RedisClusterTest, FollowsASlotThatMoves) {
  const PlanKey key = KeyOf("a");
  const std::string slot = std::to_string(RedisSlotOf(keys_.Plan(key)));
  const int from = Shared()->OwnerOf(keys_.Plan(key));
  const int to = (from + 1) % kServers;
  const auto client = Shared()->Client();
  RedisPlanStore store({}, client, &metrics_);
  ASSERT_TRUE(store.Put(key, EntryOf("a")).ok());
  RedisDecisions decisions("stowage", client, &metrics_);
  Decision decision;
  decision.stamp = 7;
  ASSERT_TRUE(decisions.Mark().ok());
  ASSERT_TRUE(decisions.Tell(key, {decision}).ok());
  const auto decided = [&] { return decisions.Keys(std::nullopt, 10, StopToken()); };
  EXPECT_EQ(*decided(), std::vector<PlanKey>{key});
  const auto set = [&](int server, const std::string& state, int other) {
    const RedisReply reply =
        Shared()->servers[server]->Ask({"CLUSTER", "SETSLOT", slot, state, Shared()->ids[other]});
    EXPECT_EQ(reply.text, "OK");
  };
  const auto move = [&](int source, int target) {
    set(target, "IMPORTING", source);
    set(source, "MIGRATING", target);
    // A lease that nobody has is nowhere, and so at who will have the slot.
    RedisSolveLease lease({}, client);
    const LeaseAnswer held = lease.Acquire({key, Bytes(1)});
    EXPECT_EQ(held.state, LeaseState::kGranted);
    EXPECT_EQ(RedisSolveLease({}, Shared()->Client()).Acquire({key, Bytes(1)}).state,
              LeaseState::kTaken);
    EXPECT_EQ(store.Get(key, Access::kPeek)->canonical, "a") << "it is still there";
    EXPECT_TRUE(absl::IsUnavailable(decided().status())) << "it may be on either side";
    const RedisReply keys =
        Shared()->servers[source]->Ask({"CLUSTER", "GETKEYSINSLOT", slot, "100"});
    RedisCommand migrate = {
        "MIGRATE", "127.0.0.1", std::to_string(Shared()->ports[target]), "", "0", "5000", "KEYS"};
    for (const RedisReply& name : keys.list) migrate.push_back(name.text);
    EXPECT_EQ(Shared()->servers[source]->Ask(migrate).text, "OK");
    set(target, "NODE", target);
    set(source, "NODE", target);
    const int64_t before = client->failovers();
    EXPECT_EQ(store.Get(key, Access::kPeek)->canonical, "a");
    EXPECT_GT(client->failovers(), before);
    EXPECT_EQ(RedisSolveLease({}, Shared()->Client()).Acquire({key, Bytes(1)}).state,
              LeaseState::kTaken);
  };
  move(from, to);
  const auto there = store.Get(key, Access::kPeek);
  EXPECT_TRUE(store.Put(key, EntryOf("a", 0, there->generation + 1)).ok());
  // A client that has known nothing, and one that knows by now, where the other servers have not all heard of it.
  EXPECT_EQ(RedisPlanStore({}, Shared()->Client(), &metrics_).Get(key, Access::kPeek)->generation,
            2);
  // Where another server tells of the move meanwhile, what is being listed is listed anew.
  EXPECT_TRUE(Await([&] {
    const auto listed = store.List(std::nullopt, 10);
    return listed.ok() && listed->size() == 1;
  }));
  // What was told before the move may have been lost in it, for all that the client can know: it is marked anew.
  EXPECT_TRUE(absl::IsUnavailable(decided().status()));
  ASSERT_TRUE(decisions.Mark().ok());
  EXPECT_TRUE(Await([&] {
    const auto all = decided();
    if (all.ok()) {
      EXPECT_EQ(*all, std::vector<PlanKey>{key});
    }
    return all.ok();
  }));
  move(to, from);
  EXPECT_EQ(store.Get(key, Access::kPeek)->generation, 2);
}

TEST_F(RedisClusterTest, AServerOfNoClusterIsNone) {
  const int port = FreePort();
  const RedisServer alone(ReplicatedAt(port));
  RedisOptions options = Shared()->options();
  options.address.nodes = {{"127.0.0.1", port}};
  EXPECT_TRUE(absl::IsUnavailable(RedisCluster(options).Ping()));
  // And the other way round.
  RedisOptions single = Shared()->options();
  single.address.nodes.clear();
  single.address.host_or_path = "127.0.0.1";
  single.address.port = Shared()->ports[0];
  RedisPool pool(single);
  bool moved = false;
  for (const char* key : {"a", "b", "c", "d"}) {
    const absl::Status status = pool.Run({{"GET", key}}).status();
    moved = moved || status.message() == "Redis is a cluster: say redis+cluster://";
  }
  EXPECT_TRUE(moved);
}

TEST(RedisClusterFailover, AKilledServerCostsAWhileAndNoWrongAnswer) {
  Cluster cluster(true);
  CountingMetrics metrics;
  RedisOptions options = cluster.options();
  options.metrics = &metrics;
  options.use = RedisUse::kDecisions;
  const auto client = std::make_shared<RedisCluster>(options);
  RedisPlanStore store({}, client, &metrics);
  RedisDecisions decisions("stowage", client, &metrics);
  const RedisKeys keys("stowage", false, true);
  std::vector<std::string> names;
  std::vector<std::string> lost;  // on the server that is killed
  for (int i = 0; i < 40; ++i) {
    names.push_back(std::to_string(i));
    const PlanKey key = KeyOf(names.back());
    ASSERT_TRUE(store.Put(key, EntryOf(names.back(), 0, 3)).ok());
    if (cluster.OwnerOf(keys.Plan(key)) == 0) lost.push_back(names.back());
  }
  ASSERT_FALSE(lost.empty());
  ASSERT_LT(lost.size(), names.size());
  ASSERT_TRUE(decisions.Mark().ok());
  const SolveQuestion question{KeyOf(lost.front()), Bytes(100)};
  RedisLeaseOptions lease_options;
  lease_options.time_to_live = std::chrono::seconds(60);
  RedisSolveLease lease(lease_options, client);
  const LeaseAnswer held = lease.Acquire(question);
  ASSERT_EQ(held.state, LeaseState::kGranted);
  ASSERT_TRUE(Await([&] {
    const RedisReply replica = cluster.servers[kServers]->Ask({"DBSIZE"});
    return replica.integer == cluster.servers[0]->Ask({"DBSIZE"}).integer;
  }));

  cluster.servers[0]->Kill();
  RedisSolveLease other(lease_options, cluster.Client());
  int failed = 0;
  bool rested = false;
  EXPECT_TRUE(Await([&] {
    const LeaseState state = other.Acquire(question).state;  // at first, while nobody has its slots
    for (const std::string& name : names) {
      const auto entry = store.Get(KeyOf(name), Access::kLookup);
      EXPECT_TRUE(entry == nullptr || (entry->canonical == name && entry->generation == 3));
      rested |= metrics.redis_resting[static_cast<size_t>(RedisUse::kDecisions)];
    }
    EXPECT_NE(state, LeaseState::kGranted);
    failed += state == LeaseState::kFailed ? 1 : 0;
    return state == LeaseState::kTaken;
  }));
  EXPECT_GT(failed, 0) << "it was dead";
  EXPECT_TRUE(rested) << "it was left alone";
  EXPECT_FALSE(metrics.redis_resting[static_cast<size_t>(RedisUse::kCache)]);
  EXPECT_TRUE(
      Await([&] { return store.Put(KeyOf(lost.front()), EntryOf(lost.front(), 0, 4)).ok(); }));
  // The others say for a moment longer that the cluster is down.
  for (const std::string& name : names) {
    EXPECT_TRUE(Await([&] { return store.Get(KeyOf(name), Access::kLookup) != nullptr; }))
        << "it was replicated";
  }
  EXPECT_EQ(*decisions.IsMarked(), false) << "what was told last may be lost";
  EXPECT_TRUE(Await([&] { return store.List(std::nullopt, 100).ok(); }));
}

}  // namespace
}  // namespace stowage::testing
