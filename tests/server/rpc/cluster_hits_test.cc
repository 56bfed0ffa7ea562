// A cluster in small on the real service: jobs of many networks on several device kinds, whose
// measured times jitter, ask two replicas with one shared tier, which are upgraded one after the
// other while they work.
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "client/rpc/grpc_connection.h"
#include "client/rpc/plan_client.h"
#include "server/cache/memory_plan_store.h"
#include "server/cache/tiered_plan_store.h"
#include "server/planning/planning_service.h"
#include "server/rpc/rpc_server.h"
#include "solvers/planner.h"
#include "tests/server/support/counting_metrics.h"
#include "tests/server/support/forwarding_store.h"

namespace stowage::testing {
namespace {

constexpr int kNetworks = 20;
constexpr int kDeviceKinds = 3;
constexpr int kShapes = 2;
constexpr int kJobs = 200;

// The library, under another version's name after an upgrade.
class VersionedSolver final : public PlanSolver {
 public:
  explicit VersionedSolver(std::string version) : version_(std::move(version)) {}
  absl::StatusOr<Bytes> Resolve(const Problem& problem, const Budget& budget,
                                const PlanOptions& options) const override {
    return library_.Resolve(problem, budget, options);
  }
  absl::StatusOr<Plan> Solve(const Problem& problem, Bytes budget,
                             const PlanOptions& options) const override {
    absl::StatusOr<Plan> plan = library_.Solve(problem, budget, options);
    if (plan.ok()) plan->provenance.solver_version = version_;
    return plan;
  }
  absl::StatusOr<Frontier> SolveFrontier(const Problem& problem,
                                         const PlanOptions& options) const override {
    return library_.SolveFrontier(problem, options);
  }

 private:
  const LibraryPlanSolver library_;
  const std::string version_;
};

struct Replica {
  Replica(const std::string& address, const std::string& version, PlanStore* shared)
      : solver(version),
        store(std::make_unique<MemoryPlanStore>(Bytes(64 << 20)),
              std::make_unique<RemoteStore>(Borrowed(shared)), std::chrono::milliseconds(50)),
        service(PlanningOptions(), &store, &solver, &metrics) {
    RpcServerOptions options;
    options.listen = address;
    absl::StatusOr<std::unique_ptr<RpcServer>> started =
        RpcServer::Start(options, &service, &store, &metrics);
    EXPECT_TRUE(started.ok()) << started.status();
    if (started.ok()) server = *std::move(started);
  }
  ~Replica() {
    service.Drain(PlanningService::Clock::now() + std::chrono::seconds(10));
    if (server) server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  }

  CountingMetrics metrics;
  VersionedSolver solver;
  TieredPlanStore store;
  PlanningService service;
  std::unique_ptr<RpcServer> server;
};

// A network as a job of one device kind and shape sees it. `jitter` is drawn anew for each job.
Profile NetworkProfile(int network, int kind, int shape, double noise, bool timed, uint64_t job) {
  std::mt19937_64 structure(static_cast<uint64_t>(network) + 1);
  std::mt19937_64 jitter(job * 1000003 + 17);
  std::uniform_real_distribution<double> factor(1 - noise, 1 + noise);
  ChainSpec spec;
  const int64_t batch = 8 << shape;
  spec.input = Bytes(4096 * batch);
  const int stages = 8 + static_cast<int>(structure() % 12);
  for (int i = 0; i < stages; ++i) {
    Stage stage;
    stage.op_kind = "block";
    stage.output = Bytes(batch * static_cast<int64_t>(1000 + structure() % 9000));
    stage.saved = stage.output + Bytes(batch * static_cast<int64_t>(structure() % 20000));
    stage.output_gradient = stage.output;
    const double forward =
        1e4 * static_cast<double>(1 + structure() % 50) * static_cast<double>(batch) / (1 + kind);
    if (timed) {
      stage.forward_time = Nanos(static_cast<int64_t>(forward * factor(jitter)));
      stage.backward_time = Nanos(static_cast<int64_t>(2 * forward * factor(jitter)));
    }
    spec.stages.push_back(stage);
  }
  absl::StatusOr<Chain> chain = Chain::Create(spec);
  EXPECT_TRUE(chain.ok()) << chain.status();
  Device device;
  device.model = "kind " + std::to_string(kind);
  return Profile{"network " + std::to_string(network), device, *std::move(chain),
                 timed ? CostSource::kMeasured : CostSource::kBytesOnly};
}

class JobSource final : public ProfileSource {
 public:
  JobSource(Profile structure, Profile full)
      : structure_(std::move(structure)), full_(std::move(full)) {}
  absl::StatusOr<const Profile*> Structure() override { return &structure_; }
  absl::StatusOr<const Profile*> Full() override {
    ++profilings;
    return &full_;
  }

  int profilings = 0;

 private:
  const Profile structure_;
  const Profile full_;
};

TEST(ClusterHits, NineteenOfTwentyJobsAfterTheFirstOfTheirKeyNeverProfile) {
  MemoryPlanStore shared(Bytes(256 << 20));
  const std::string base = "unix:" + ::testing::TempDir() + "cluster_" + std::to_string(getpid());
  const std::vector<std::string> addresses = {base + "_a", base + "_b"};
  std::vector<std::unique_ptr<Replica>> replicas;
  std::vector<std::unique_ptr<PlanConnection>> connections;
  for (const std::string& address : addresses) {
    replicas.push_back(std::make_unique<Replica>(address, "old", &shared));
    GrpcOptions options;
    options.address = address;
    connections.push_back(MakeGrpcConnection(options));
  }

  std::mt19937_64 draw(5);
  std::set<std::tuple<int, int, int>> seen;
  int could_hit = 0, hit = 0;
  for (int job = 0; job < kJobs; ++job) {
    // The upgrade rolls: one replica, and some jobs later the other.
    for (const size_t r : {size_t{0}, size_t{1}}) {
      if (job != kJobs / 2 + static_cast<int>(r) * 10) continue;
      replicas[r].reset();
      replicas[r] = std::make_unique<Replica>(addresses[r], "new", &shared);
    }
    // Some networks are asked for far more often than others.
    const int network = static_cast<int>(std::min(draw() % kNetworks, draw() % kNetworks));
    const int kind = static_cast<int>(draw() % kDeviceKinds);
    const int shape = static_cast<int>(draw() % kShapes);
    const double noise = 0.05 + 0.15 * static_cast<double>(draw() % 100) / 100;
    const auto number = static_cast<uint64_t>(job);
    JobSource source(NetworkProfile(network, kind, shape, 0, false, number),
                     NetworkProfile(network, kind, shape, noise, true, number));
    PlanClient client(connections[draw() % connections.size()].get(), {});
    CallOptions call = CallOptions::Within(std::chrono::seconds(30));
    call.job = "job-" + std::to_string(job);
    const absl::StatusOr<ClientPlan> plan = client.Plan(&source, ShareOfStoreAll{0.6}, call);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->reply.plan.status, PlanStatus::kFound);
    EXPECT_EQ(plan->profiled, source.profilings > 0);
    if (seen.emplace(network, kind, shape).second) continue;
    ++could_hit;
    if (source.profilings == 0) ++hit;
  }
  RecordProperty("hits", hit);
  RecordProperty("could_hit", could_hit);
  EXPECT_GE(could_hit, 80);
  EXPECT_GE(hit, 0.95 * could_hit) << hit << " of " << could_hit;
}

}  // namespace
}  // namespace stowage::testing
