// A job whose network is in the catalogue of a stowaged that runs: it finds a plan and nobody solves one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/rpc/grpc_connection.h"
#include "client/rpc/plan_client.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/zoo/device_kinds.h"
#include "solvers/zoo/networks.h"
#include "tests/support/stowaged_process.h"
#include "tests/support/temporary_folder.h"

namespace stowage {
namespace {

using std::chrono::seconds;

constexpr char kCatalogue[] = STOWAGE_SOURCE_DIR "/solvers/zoo/data";

Device JobDevice() {
  Device device;
  device.model = "NVIDIA A100-SXM4-40GB";
  device.framework = "libtorch 2.11.0";
  device.math_settings = "deterministic=0";
  device.allocation_granularity = Bytes(512);
  return device;
}

// A job as client/torch makes them: the structure of the network from shapes; bytes with workspaces, which
// are more than shapes tell, in a pass; times only if it must.
class Job final : public ProfileSource {
 public:
  Job(const std::string& network, int64_t batch) {
    const Chain modelled =
        *NetworkChain({network, 224, batch, 1000}, FindDeviceKind("a100")->model);
    ChainSpec spec = modelled.spec();
    const auto set = [&spec](bool times, Bytes workspace) {
      for (Stage& stage : spec.stages) {
        if (!times) stage.forward_time = stage.backward_time = Nanos(0);
        for (Bytes Stage::*overhead : {&Stage::forward_saving_overhead, &Stage::forward_overhead,
                                       &Stage::backward_overhead}) {
          stage.*overhead += workspace;
        }
      }
      if (!times) spec.loss.forward_time = spec.loss.backward_time = Nanos(0);
      return Chain::Create(spec).value();
    };
    for (Stage& stage : spec.stages) stage.forward_time = Nanos(3 * stage.forward_time.value());
    full_ = Profile{network, JobDevice(), set(true, Bytes(24 << 20)), CostSource::kMeasured};
    bytes_ = Profile{network, JobDevice(), set(false, Bytes(0)), CostSource::kBytesOnly};
    spec = modelled.spec();
    shapes_ = Profile{network, JobDevice(), set(false, Bytes(0)), CostSource::kBytesOnly};
  }

  const Profile* Shapes() override { return &*shapes_; }
  absl::StatusOr<const Profile*> Structure() override {
    ++measured_bytes;
    return &*bytes_;
  }
  absl::StatusOr<const Profile*> Full() override {
    ++full_profiles;
    return &*full_;
  }

  Bytes Peak(const Schedule& schedule) const {
    return Evaluator(bytes_->problem).Run(schedule).value().peak;
  }
  Bytes StoreAll() const { return Instance(bytes_->problem).store_all().value().peak; }

  int measured_bytes = 0;
  int full_profiles = 0;

 private:
  std::optional<Profile> shapes_, bytes_, full_;
};

class CatalogueHitTest : public ::testing::Test {
 protected:
  CatalogueHitTest()
      : server_({absl::StrCat("--catalogue=", kCatalogue),
                 absl::StrCat("--catalogue_environments=", Environments())}) {
    GrpcOptions options;
    options.address = server_.address();
    connection_ = MakeGrpcConnection(options);
  }

  std::string Environments() const {
    std::ofstream(folder_ / "environments")
        << "kind=a100 device=\"NVIDIA A100-SXM4-40GB\" framework=\"libtorch 2.11.0\" "
           "math_settings=deterministic=0 granularity=512\n";
    return folder_ / "environments";
  }

  absl::StatusOr<ClientPlan> Plan(Job* job, const Budget& budget) {
    return PlanClient(connection_.get(), {}).Plan(job, budget, CallOptions::Within(seconds(20)));
  }

  // How many keys the server keeps whose plans are none of the catalogue's.
  int Solved() {
    int solved = 0;
    ListQuery query;
    query.page_size = 1000;
    do {
      const auto page = connection_->ListPlans(query, CallOptions::Within(seconds(20)));
      EXPECT_TRUE(page.ok()) << page.status();
      if (!page.ok()) return -1;
      listed_ += static_cast<int>(page->plans.size());
      query.page_token = page->next_page_token;
      for (const ListedPlan& plan : page->plans) {
        if (!sampled_.insert(plan.revision.key).second) continue;
        const auto text = connection_->ExplainPlan(plan.revision.key, plan.revision.budget,
                                                   CallOptions::Within(seconds(20)));
        if (!text.ok() || text->find("from the catalogue") == std::string::npos) ++solved;
      }
    } while (!query.page_token.empty());
    return solved;
  }

  TemporaryFolder folder_;
  StowagedProcess server_;
  std::unique_ptr<PlanConnection> connection_;
  int listed_ = 0;
  std::set<PlanKey> sampled_;
};

TEST_F(CatalogueHitTest, AJobFindsAPlanWithoutTimesAndWithoutASolve) {
  for (const auto& [network, batch, least] :
       {std::tuple("resnet50", 64, 0.5), std::tuple("vgg16", 32, 0.85),
        std::tuple("densenet121", 128, 0.4)}) {
    SCOPED_TRACE(network);
    for (const double share : {0.9, least}) {
      Job job(network, batch);
      const Bytes budget = ShareOf({share}, job.StoreAll());
      const absl::StatusOr<ClientPlan> plan = Plan(&job, budget);
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->reply.source, PlanSource::kCache);
      EXPECT_FALSE(plan->profiled);
      EXPECT_TRUE(plan->reply.profile_wanted);
      EXPECT_EQ(job.full_profiles, 0);
      EXPECT_EQ(job.measured_bytes, 1) << "nobody has measured workspaces yet";
      ASSERT_EQ(plan->reply.plan.status, PlanStatus::kFound);
      EXPECT_LE(job.Peak(plan->reply.plan.schedule), budget);
      EXPECT_GT(plan->reply.plan.prediction.recomputed_forwards, 0);
    }
  }
  EXPECT_EQ(Solved(), 0);
  EXPECT_GT(listed_, 1000);
}

TEST_F(CatalogueHitTest, WhatIsNotInItIsSolved) {
  Job odd("resnet18", 17);
  const absl::StatusOr<ClientPlan> plan = Plan(&odd, ShareOfStoreAll{0.9});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->reply.source, PlanSource::kSolved);
  EXPECT_EQ(odd.full_profiles, 1);
}

// The first who answers the wish for a profile is the reference: others need no pass of their own any more.
TEST_F(CatalogueHitTest, AfterTheFirstProfileShapesAreEnough) {
  Job first("resnet18", 32);
  const Bytes budget = ShareOf({0.9}, first.StoreAll());
  ASSERT_TRUE(PlanClient(connection_.get(), {})
                  .Compute(&first, budget, CallOptions::Within(seconds(20)))
                  .ok());
  // The server answers before it has learned.
  const auto patience = std::chrono::steady_clock::now() + seconds(20);
  for (bool learned = false; !learned;) {
    ASSERT_LT(std::chrono::steady_clock::now(), patience);
    Job second("resnet18", 32);
    const absl::StatusOr<ClientPlan> plan = Plan(&second, budget);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->reply.source, PlanSource::kCache);
    learned = !plan->reply.profile_wanted && second.measured_bytes == 0;
  }
}

TEST(CatalogueConfiguration, MistakesEndTheServer) {
  const TemporaryFolder folder;
  std::ofstream(folder / "wrong") << "kind=abacus device=x\n";
  std::ofstream(folder / "right") << "kind=a100 device=x\n";
  const TemporaryFolder damaged;
  std::filesystem::copy(absl::StrCat(kCatalogue, "/alexnet.catalogue"), damaged.path());
  std::filesystem::resize_file(damaged / "alexnet.catalogue", 9000);
  const std::vector<std::vector<std::string>> cases = {
      {absl::StrCat("--catalogue=", kCatalogue)},
      {absl::StrCat("--catalogue_environments=", folder / "wrong")},
      {absl::StrCat("--catalogue=", kCatalogue),
       absl::StrCat("--catalogue_environments=", folder / "wrong")},
      {absl::StrCat("--catalogue=", folder.path()),
       absl::StrCat("--catalogue_environments=", folder / "wrong")},
      {absl::StrCat("--catalogue=", damaged.path()),
       absl::StrCat("--catalogue_environments=", folder / "right")},
  };
  for (const std::vector<std::string>& flags : cases) {
    StowagedProcess server(flags);
    EXPECT_EQ(server.address(), "") << flags.back();
  }
}

}  // namespace
}  // namespace stowage
