// Ranks of a job that plan as one, each a thread of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/agent/agent.h"
#include "client/agent/agreed_terms.h"
#include "client/agent/plan_agreement.h"
#include "client/rpc/local_connection.h"
#include "client/torch/offload/simulated_device.h"
#include "solvers/model/transfer_model.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "tests/client/agent/fake_training.h"
#include "tests/client/torch/random_schedule.h"
#ifdef STOWAGE_TEST_GLOO
#include "client/agent/group_agreement.h"
#include "tests/client/agent/gloo_group.h"
#endif

namespace stowage {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 3;

class AgentRanksTest : public ::testing::Test {
 protected:
  AgentRanksTest() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = ::testing::TempDir() + "/ranks-" + test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~AgentRanksTest() override { std::filesystem::remove_all(folder_); }

  absl::StatusOr<std::unique_ptr<PlanAgreement>> Join(int rank) const {
    return MakeFolderAgreement({folder_, rank, kRanks, std::chrono::seconds(20)});
  }

  // One thread per rank.
  static void OnAllRanks(const std::function<void(int)>& run) {
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back(run, rank);
    for (std::thread& thread : threads) thread.join();
  }

  std::unique_ptr<Agent> MakeAgent(int rank, ExecutionDevice* device = nullptr) {
    return MakeAgent(rank, *Join(rank), device);
  }

  std::unique_ptr<Agent> MakeAgent(int rank, std::shared_ptr<PlanAgreement> agreement,
                                   ExecutionDevice* device = nullptr) {
    AgentOptions options;
    options.device = device;
    options.agreement = std::move(agreement);
    options.profile.meter = &worlds_[rank].meter;
    options.drift.window = 4;
    options.wanted_profile_every = 2;
    options.report_after = 0;
    options.off = [this, rank] { return off_[rank].load(); };
    options.on_event = [this, rank](const AgentEvent& event) {
      if (std::holds_alternative<ProfileTakenEvent>(event)) ++profiles_[rank];
    };
    return std::make_unique<Agent>(std::make_unique<FakeModel>(&worlds_[rank]), service_.Connect(),
                                   options);
  }

  std::string folder_;
  FakeWorld worlds_[kRanks];
  FakeService service_;
  int profiles_[kRanks] = {};
  std::atomic<bool> off_[kRanks] = {};  // the kill switches
};

TEST_F(AgentRanksTest, TermsAreTheLeastBudgetAndTheGreatestCosts) {
  absl::StatusOr<AgreedTerms> agreed[kRanks] = {absl::UnknownError(""), absl::UnknownError(""),
                                                absl::UnknownError("")};
  OnAllRanks([&](int rank) {
    const auto agreement = Join(rank);
    Profile profile = FakeProfile(FakeBatch(4), CostSource::kMeasured);
    ChainSpec spec = std::get<Chain>(profile.problem).spec();
    // Each rank is the slowest at one stage.
    spec.stages[static_cast<size_t>(rank)].forward_time = Nanos(77);
    spec.stages[static_cast<size_t>(rank)].backward_time = Nanos(9000000);
    spec.stages[3].backward_overhead = Bytes(10 * rank);
    profile.problem = *Chain::Create(spec);
    agreed[rank] = AgreeOnTerms(agreement->get(), OwnTerms{profile, Bytes(1000 - rank)});
  });
  for (const absl::StatusOr<AgreedTerms>& terms : agreed) {
    ASSERT_TRUE(terms.ok()) << terms.status();
    EXPECT_EQ(terms->budget, Bytes(998));
    const Chain& chain = std::get<Chain>(terms->profile.problem);
    for (int l = 1; l <= kRanks; ++l) {
      EXPECT_EQ(chain.stage(l).forward_time, Nanos(1000000));
      EXPECT_EQ(chain.stage(l).backward_time, Nanos(9000000));
    }
    EXPECT_EQ(chain.stage(4).backward_overhead, Bytes(20));
  }
}

TEST_F(AgentRanksTest, RecomputesStopEarlyIfTheyDoOnAllRanks) {
  absl::StatusOr<AgreedTerms> agreed[kRanks] = {absl::UnknownError(""), absl::UnknownError(""),
                                                absl::UnknownError("")};
  OnAllRanks([&](int rank) {
    const auto agreement = Join(rank);
    Profile profile = FakeProfile(FakeBatch(4), CostSource::kMeasured);
    ChainSpec spec = std::get<Chain>(profile.problem).spec();
    spec.stages[0].recompute_saving_time = Nanos(10 + rank);
    spec.stages[0].recompute_saving_overhead = Bytes(20 - rank);
    if (rank != 1) spec.stages[1].recompute_saving_time = Nanos(0);
    // Not said: as much as a forward that goes on.
    spec.stages[2].recompute_saving_time = Nanos(0);
    if (rank > 0) spec.stages[2].recompute_saving_overhead = Bytes(1);
    profile.problem = *Chain::Create(spec);
    agreed[rank] = AgreeOnTerms(agreement->get(), OwnTerms{profile, Bytes(1000)});
  });
  for (const absl::StatusOr<AgreedTerms>& terms : agreed) {
    ASSERT_TRUE(terms.ok()) << terms.status();
    const Chain& chain = std::get<Chain>(terms->profile.problem);
    EXPECT_EQ(chain.stage(1).recompute_saving_time, Nanos(10 + kRanks - 1));
    EXPECT_EQ(chain.stage(1).recompute_saving_overhead, Bytes(20));
    EXPECT_FALSE(chain.stage(2).stops());
    EXPECT_EQ(chain.stage(3).stopped_overhead(),
              chain.stage(3).output + chain.stage(3).forward_saving_overhead);
  }
}

TEST_F(AgentRanksTest, TheLinkIsTheSlowestOfAllIfAllHaveOne) {
  for (const bool all : {true, false}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    absl::StatusOr<AgreedTerms> agreed[kRanks] = {absl::UnknownError(""), absl::UnknownError(""),
                                                  absl::UnknownError("")};
    OnAllRanks([&](int rank) {
      const auto agreement = Join(rank);
      Profile profile = FakeProfile(FakeBatch(4), CostSource::kMeasured);
      Device& device = profile.device;
      // On both sides of a class's limit.
      device.to_host_bytes_per_second = 17000000000 + rank * 10000000;
      device.to_device_bytes_per_second = 20000000000 - rank;
      device.to_host_latency = Nanos(100 + rank);
      device.to_device_latency = Nanos(200 - rank);
      device.duplex = rank == 1 ? Duplex::kHalf : Duplex::kFull;
      device.host_memory = Bytes(all || rank != 2 ? 5000 + rank : 0);
      agreed[rank] = AgreeOnTerms(agreement->get(), OwnTerms{profile, Bytes(1000)});
    });
    for (const absl::StatusOr<AgreedTerms>& terms : agreed) {
      ASSERT_TRUE(terms.ok()) << terms.status();
      const auto link = TransfersOf(terms->profile.device);
      ASSERT_EQ(link.has_value(), all);
      if (!all) continue;
      EXPECT_EQ(link->to_host.bytes_per_second, 17000000000);
      EXPECT_EQ(link->to_device.bytes_per_second, 20000000000 - (kRanks - 1));
      EXPECT_EQ(link->to_host.latency, Nanos(100 + kRanks - 1));
      EXPECT_EQ(link->to_device.latency, Nanos(200));
      EXPECT_FALSE(link->full_duplex);
      EXPECT_EQ(link->host_memory, Bytes(5000));
      EXPECT_EQ(MakePlanKey(terms->profile, {}), MakePlanKey(agreed[0]->profile, {}));
    }
  }
}

TEST_F(AgentRanksTest, TermsOfGraphsKeepTheirStructure) {
  GraphSpec spec;
  for (int64_t v = 0; v < 3; ++v) {
    Vertex vertex;
    vertex.id = 10 * v;  // numbers of the sender's own
    vertex.program_order = v;
    vertex.op_kind = "op";
    vertex.output = Bytes(8);
    if (v > 0) vertex.inputs = {{10 * (v - 1), true}};
    spec.vertices.push_back(vertex);
  }
  const Profile profile{"g", Device(), *Graph::Create(spec), CostSource::kMeasured};
  absl::Status result[kRanks];
  OnAllRanks([&](int rank) {
    GraphSpec own = spec;
    own.vertices[1].forward_time = Nanos(rank);
    const Profile measured{"g", Device(), *Graph::Create(own), CostSource::kMeasured};
    const auto agreement = Join(rank);
    const auto terms = AgreeOnTerms(agreement->get(), OwnTerms{measured, Bytes(100)});
    result[rank] = terms.status();
    if (!terms.ok()) return;
    EXPECT_EQ(std::get<Graph>(terms->profile.problem).vertex(1).forward_time, Nanos(kRanks - 1));
    EXPECT_EQ(MakePlanKey(terms->profile, {}), MakePlanKey(profile, {}));
  });
  for (const absl::Status& status : result) EXPECT_TRUE(status.ok()) << status;
}

TEST_F(AgentRanksTest, OneAsksAndAllAdoptTheSame) {
  std::vector<AdoptedPlan> adopted(kRanks);
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{0.9 - 0.1 * rank});
    ASSERT_TRUE(plan.ok()) << plan.status();
    adopted[static_cast<size_t>(rank)] = *plan;
    EXPECT_TRUE(agent->Step(FakeBatch(4)).ok());
    // A smaller batch is served for good.
    EXPECT_TRUE(agent->Step(FakeBatch(2)).ok());
  });
  EXPECT_EQ(service_.computed, 1);
  for (const AdoptedPlan& plan : adopted) {
    ASSERT_EQ(plan.plan.status, PlanStatus::kFound);
    EXPECT_EQ(plan.digest, adopted[0].digest);
    EXPECT_EQ(plan.key, adopted[0].key);
    EXPECT_EQ(plan.plan.budget, adopted[2].plan.budget);
    EXPECT_EQ(plan.plan.prediction.makespan, adopted[0].plan.prediction.makespan);
    EXPECT_LE(plan.plan.prediction.peak, plan.plan.budget);
  }
  for (const int profiles : profiles_) EXPECT_EQ(profiles, 2);  // bytes, then times
}

TEST_F(AgentRanksTest, WordsOfAnyRankGoRound) {
  OnAllRanks([&](int rank) {
    const auto agreement = Join(rank);
    for (int from = 0; from < kRanks; ++from) {
      for (const std::string& words : {std::string(), std::string("a"), std::string("12345678"),
                                       std::string("\0\xff\x80 of any bytes\0", 18)}) {
        const auto said =
            BroadcastFrom(agreement->get(), from, rank == from ? words : "what nobody looks at");
        ASSERT_TRUE(said.ok()) << said.status();
        EXPECT_EQ(*said, words);
      }
    }
  });
}

// One rank is slow all over, another one in a single stage, in which the first one is fast.
TEST_F(AgentRanksTest, ThePlanOfAJobIsThatByWhichTheSlowestRankIsFastest) {
  const auto set_times = [](int rank, ChainSpec* spec) {
    for (size_t i = 0; i < spec->stages.size(); ++i) {
      const int64_t of_rank[kRanks] = {i == 2 ? 1000 : 100000, i == 2 ? 150000 : 1000, 500};
      const int64_t time = rank < kRanks ? of_rank[rank] : std::max(of_rank[0], of_rank[1]);
      spec->stages[i].forward_time = Nanos(time);
      spec->stages[i].backward_time = Nanos(1000);
    }
  };
  AdoptedPlan adopted[kRanks];
  OnAllRanks([&](int rank) {
    worlds_[rank].costs = [&, rank](ChainSpec* spec) { set_times(rank, spec); };
    AgentOptions options;
    options.agreement = *Join(rank);
    options.profile.meter = &worlds_[rank].meter;
    Agent agent(std::make_unique<FakeModel>(&worlds_[rank]), MakeLocalConnection(), options);
    const auto plan = agent.Plan(FakeBatch(4), ShareOfStoreAll{0.9});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->source, PlanSource::kLocal);
    EXPECT_TRUE(agent.Step(FakeBatch(4)).ok());
    adopted[rank] = *plan;
  });
  const auto problem_of = [&](int rank) {
    ChainSpec spec =
        std::get<Chain>(FakeProfile(FakeBatch(4), CostSource::kMeasured).problem).spec();
    set_times(rank, &spec);
    return Chain::Create(std::move(spec)).value();
  };
  const auto slowest = [&](const Schedule& schedule) {
    Nanos longest(0);
    for (int rank = 0; rank < kRanks; ++rank) {
      longest = std::max(longest, Evaluator(problem_of(rank)).Run(schedule)->makespan);
    }
    return longest;
  };
  PlanOptions options;
  const Plan by_greatest =
      MakePlan(Instance(problem_of(kRanks)), ShareOfStoreAll{0.9}, options).value();
  ASSERT_EQ(by_greatest.status, PlanStatus::kFound);
  EXPECT_LE(slowest(adopted[0].plan.schedule), slowest(by_greatest.schedule) - Nanos(90000))
      << "the stage that runs again is the third";
  for (const AdoptedPlan& plan : adopted) {
    EXPECT_EQ(plan.digest, adopted[0].digest);
    EXPECT_LE(plan.plan.prediction.peak, plan.plan.budget);
  }
}

TEST_F(AgentRanksTest, OnAHitNoRankTimesAnything) {
  for (int job = 0; job < 2; ++job) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    for (int& profiles : profiles_) profiles = 0;
    OnAllRanks([&](int rank) {
      auto agent = MakeAgent(rank);
      const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(plan->source, job == 0 ? PlanSource::kSolved : PlanSource::kCache);
    });
  }
  for (const int profiles : profiles_) EXPECT_EQ(profiles, 1);
  EXPECT_EQ(service_.computed, 1);
}

TEST_F(AgentRanksTest, WhatDoesNotFitFitsNobody) {
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    const auto plan = agent->Plan(FakeBatch(4), Bytes(rank == 1 ? 1 : 1000000));
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->plan.status, PlanStatus::kProvenInfeasible);
    EXPECT_GT(plan->plan.bounds.least_budget, Bytes(1));
  });
}

TEST_F(AgentRanksTest, AnErrorOfOneIsAnErrorOfAll) {
  worlds_[1].measure_fails = true;
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    const absl::Status status = agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the profiler fails"));
  });
}

// Each has its own workspaces, and the plan is to hold for all of them.
TEST_F(AgentRanksTest, TheLeastAndSharesAreOfWhatAllTake) {
  for (const Budget& budget : {Budget(LeastBudget{}), Budget(ShareOfStoreAll{0.7})}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    service_.kept.clear();
    Bytes budgets[kRanks];
    const auto overheads = [](int rank, ChainSpec* spec) {
      for (int r = 0; r < kRanks; ++r) {
        if (rank != r && rank != kRanks) continue;
        spec->stages[static_cast<size_t>(2 * r)].backward_overhead = Bytes(5000 + r);
      }
    };
    OnAllRanks([&](int rank) {
      worlds_[rank].costs = [&, rank](ChainSpec* spec) { overheads(rank, spec); };
      auto agent = MakeAgent(rank);
      const auto plan = agent->Plan(FakeBatch(4), budget);
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->plan.status, PlanStatus::kFound);
      EXPECT_TRUE(agent->Step(FakeBatch(4)).ok());
      budgets[rank] = plan->plan.budget;
    });
    Profile of_all = FakeProfile(FakeBatch(4), CostSource::kMeasured);
    ChainSpec spec = std::get<Chain>(of_all.problem).spec();
    overheads(kRanks, &spec);
    of_all.problem = Chain::Create(std::move(spec)).value();
    PlanOptions options;
    options.recompute_only = true;
    const Bytes expected = ResolveBudget(of_all, budget, options).value();
    for (const Bytes& of_rank : budgets) EXPECT_EQ(of_rank, expected);
  }
}

// The others are told at once, and do not wait until nobody comes.
TEST_F(AgentRanksTest, ARankThatCannotComeSoFarTellsTheOthers) {
  using Call = std::function<absl::Status(Agent*)>;
  const Call plans = [](Agent* agent) {
    return agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).status();
  };
  const std::pair<Call, absl::StatusCode> cases[] = {
      {[](Agent* agent) { return agent->Resume("nonsense", FakeBatch(4)).status(); },
       absl::StatusCode::kInvalidArgument},
      {[](Agent* agent) { return agent->Plan(FakeBatch(4)).status(); },
       absl::StatusCode::kFailedPrecondition},
  };
  for (const auto& [fails, code] : cases) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    service_.kept.clear();
    OnAllRanks([&, &fails = fails, &code = code](int rank) {
      auto agent = MakeAgent(rank);
      const absl::Status status = rank == 1 ? fails(agent.get()) : plans(agent.get());
      EXPECT_EQ(status.code(), rank == 1 ? code : absl::StatusCode::kInternal) << status;
      if (rank != 1) {
        EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 failed"));
      }
      // Nobody has gone out of step: the next call of all is one again.
      EXPECT_TRUE(plans(agent.get()).ok());
    });
  }
  for (const int profiles : profiles_) EXPECT_EQ(profiles, 4) << "of the calls of all alone";
}

// The job starts again with one rank less: all have the token that one of those before has kept.
TEST_F(AgentRanksTest, ATokenIsGoodForAnotherNumberOfRanks) {
  std::string token;
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
    ASSERT_TRUE(agent->Step(FakeBatch(4)).ok());
    const std::string own = agent->Token();
    // Steps by it, too.
    ASSERT_TRUE(agent->Step(FakeBatch(2)).ok());
    EXPECT_EQ(agent->Token(), own);
    if (rank == 2) token = own;
  });
  ASSERT_NE(token, "");
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks - 1; ++rank) {
    threads.emplace_back([&, rank] {
      auto agent = MakeAgent(
          rank, MakeFolderAgreement({folder_, rank, kRanks - 1, std::chrono::seconds(20)}).value());
      const auto plan = agent->Resume(token, FakeBatch(4));
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_EQ(agent->Token(), token);
      EXPECT_TRUE(agent->Step(FakeBatch(4)).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(service_.computed, 1);
}

TEST_F(AgentRanksTest, OneReportsForAll) {
  OnAllRanks([&](int rank) {
    AgentOptions options;
    options.agreement = *Join(rank);
    options.profile.meter = &worlds_[rank].meter;
    options.report_after = 2;
    Agent agent(std::make_unique<FakeModel>(&worlds_[rank]), service_.Connect(), options);
    ASSERT_TRUE(agent.Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
    for (int step = 0; step < 4; ++step) EXPECT_TRUE(agent.Step(FakeBatch(4)).ok());
    EXPECT_EQ(agent.events().of<ReportSentEvent>(), rank == 0 ? 1 : 0);
  });
  EXPECT_EQ(service_.reports.size(), 1u);
}

TEST_F(AgentRanksTest, RanksThatTrainDifferentThingsAreTold) {
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    EXPECT_EQ(agent->Plan(FakeBatch(rank == 2 ? 5 : 4), ShareOfStoreAll{0.7}).status().code(),
              absl::StatusCode::kFailedPrecondition);
  });
}

TEST_F(AgentRanksTest, RanksOfDifferentVersionsAreTold) {
  for (const int other : {0, 1, 2}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    OnAllRanks([&](int rank) {
      const auto agreement = Join(rank);
      const std::string version = rank == other ? "0.0.1" : kSolverVersion;
      const absl::Status status = AgreeToBegin(agreement->get(), Beginning{}, version).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(status.message()), HasSubstr("another version of Stowage"));
    });
  }
}

TEST_F(AgentRanksTest, WhatOneLacksAllHearOf) {
  OnAllRanks([&](int rank) {
    const auto agreement = Join(rank);
    for (int lacking = -1; lacking < kRanks; ++lacking) {
      const auto some_lack = AgreeToBegin(agreement->get(), Beginning{rank == lacking, false});
      ASSERT_TRUE(some_lack.ok()) << some_lack.status();
      EXPECT_EQ(some_lack->lacks, lacking >= 0);
    }
  });
}

// One rank runs out of memory: all go on by a smaller plan, from the same step on.
TEST_F(AgentRanksTest, AllSwitchAtAnAgreedStep) {
  std::vector<Digest> digests[kRanks];
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0});
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (rank == 1) worlds_[1].room = Bytes(plan->plan.prediction.peak.value() * 85 / 100);
    for (int step = 0; step < 6; ++step) {
      const absl::StatusOr<StepReport> report = agent->Step(FakeBatch(4));
      ASSERT_TRUE(report.ok()) << rank << " " << step << report.status();
      // Up to the fourth step it is the old plan, which the one rank ends by that of the least memory.
      EXPECT_EQ(report->recomputed_forwards > 0, step >= 3 || rank == 1) << rank << " " << step;
    }
    EXPECT_EQ(agent->steps().finished, rank == 1 ? 3 : 0);
    const std::string token = agent->Token();
    digests[rank].push_back(Sha256(token));
  });
  for (const auto& of_rank : digests) EXPECT_EQ(of_rank, digests[0]);
}

// What one rank cannot move, none does.
TEST_F(AgentRanksTest, CopiesAreForbiddenOnAllRanks) {
  std::string tokens[kRanks];
  int64_t forbidden[kRanks] = {};
  OnAllRanks([&](int rank) {
    const auto device = SimulatedDevice::Create(FastLink(/*full_duplex=*/true)).value();
    auto agent = MakeAgent(rank, device.get());
    const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_GT(plan->plan.prediction.offloaded, Bytes(0));
    worlds_[rank].immovable = rank == 1;
    for (int step = 0; step < 6; ++step) {
      const absl::StatusOr<StepReport> report = agent->Step(FakeBatch(4));
      EXPECT_TRUE(report.ok()) << rank << " " << step << report.status();
    }
    EXPECT_EQ(agent->steps().finished, rank == 1 ? 3 : 0);
    forbidden[rank] = agent->events().of<CopiesForbiddenEvent>();
    tokens[rank] = agent->Token();
  });
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(tokens[rank], tokens[0]);
    EXPECT_EQ(forbidden[rank], 1);
  }
}

// Slow steps are no reason to fail those of another shape until the ranks agree on another plan.
TEST_F(AgentRanksTest, AShapeThatIsToBePlannedAgainServesSmallerOnesMeanwhile) {
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
    worlds_[rank].slower = 2;
    for (int step = 0; step < 4; ++step) EXPECT_TRUE(agent->Step(FakeBatch(4)).ok());
    EXPECT_EQ(agent->events().of<ReplanEvent>(), 1);
    const absl::StatusOr<StepReport> smaller = agent->Step(FakeBatch(2));
    EXPECT_TRUE(smaller.ok()) << smaller.status();
    EXPECT_EQ(agent->steps().by_larger, 1);
  });
}

// Nor is a lack of memory: until all have planned again for the larger shape, a smaller batch is no reason to plan alone.
TEST_F(AgentRanksTest, AShapeThatFailsServesSmallerOnesMeanwhile) {
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0});
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (rank == 1) worlds_[1].room = Bytes(plan->plan.prediction.peak.value() * 85 / 100);
    const int before = profiles_[rank];
    EXPECT_TRUE(agent->Step(FakeBatch(4)).ok());
    for (int step = 0; step < 4; ++step) {
      const absl::StatusOr<StepReport> smaller = agent->Step(FakeBatch(2));
      EXPECT_TRUE(smaller.ok()) << rank << " " << step << smaller.status();
    }
    EXPECT_EQ(profiles_[rank], before);
    EXPECT_EQ(agent->steps().finished, rank == 1 ? 5 : 0);
    // If the larger one does not come again, there is no plan that all have.
    EXPECT_TRUE(agent->Step(FakeBatch(2)).ok());
    EXPECT_EQ(profiles_[rank] > before, rank == 1);
  });
}

// Shapes that come in turn, and looks that always meet the same one of them, were they equally far apart.
TEST_F(AgentRanksTest, AWishIsMetWhateverShapesComeInTurn) {
  for (const int in_turn : {2, 3, 4, 5, 7}) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    OnAllRanks([&](int rank) {
      worlds_[rank].room = Bytes(int64_t{1} << 40);
      auto agent = MakeAgent(rank);
      ASSERT_TRUE(agent->Plan(FakeBatch(2), ShareOfStoreAll{1.0}).ok());
      const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0});
      ASSERT_TRUE(plan.ok()) << plan.status();
      if (rank == 1) worlds_[1].room = Bytes(plan->plan.prediction.peak.value() * 85 / 100);
      for (int step = 0; step < 150; ++step) {
        const int64_t size = step % in_turn == 0 ? 4 : 2;
        ASSERT_TRUE(agent->Step(FakeBatch(size)).ok()) << rank << " " << step;
      }
      EXPECT_LT(agent->steps().finished, 150 / in_turn);
      EXPECT_EQ(agent->events().of<AdoptedEvent>(), 3) << in_turn;
    });
  }
}

// What was planned for one shape is no limit for another, but by the memory that ran out.
TEST_F(AgentRanksTest, DriftLeavesEachShapeItsBudget) {
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    const auto large = agent->Plan(FakeBatch(6), ShareOfStoreAll{0.7});
    const auto small = agent->Plan(FakeBatch(4), ShareOfStoreAll{0.6});
    ASSERT_TRUE(large.ok() && small.ok());
    ASSERT_LT(small->plan.budget, large->plan.budget);
    worlds_[rank].slower = 2;
    for (int step = 0; step < 9; ++step) ASSERT_TRUE(agent->Step(FakeBatch(6)).ok());
    EXPECT_EQ(agent->events().of<ReplanEvent>(), 1);
    EXPECT_EQ(agent->events().of<AdoptedEvent>(), 3);
    EXPECT_EQ(agent->memory().budget, large->plan.budget);
  });
}

// The first asks for all; they measure at the same step.
TEST_F(AgentRanksTest, AProfileThatIsWantedIsOneOfAllRanks) {
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
    if (rank == 0) service_.profile_wanted = true;
    const int before = profiles_[rank];
    for (int step = 0; step < 5; ++step) {
      EXPECT_TRUE(agent->Step(FakeBatch(4)).ok());
      EXPECT_EQ(profiles_[rank] - before, step < 3 ? 0 : 1) << rank << " " << step;
    }
  });
  EXPECT_EQ(service_.computed, 2);
}

// One rank's switch is on at the start: nobody measures, plans, or waits for it.
TEST_F(AgentRanksTest, WhereOneIsSwitchedOffNobodyPlans) {
  off_[1] = true;
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    const auto none = agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7});
    ASSERT_TRUE(none.ok()) << none.status();
    EXPECT_EQ(none->plan.status, PlanStatus::kNotFound);
    EXPECT_THAT(none->plan.explanation, HasSubstr("switched off"));
    EXPECT_EQ(agent->events().of<KilledEvent>(), 1);
    // Steps go on plain, at looks and between them, also when the switch is off again.
    for (int step = 0; step < 20; ++step) {
      if (rank == 1 && step == 6) off_[1] = false;
      const auto report = agent->Step(FakeBatch(4));
      ASSERT_TRUE(report.ok()) << report.status();
      EXPECT_EQ(report->recomputed_forwards, 0);
    }
    EXPECT_EQ(agent->steps().plain, 20);
    EXPECT_EQ(agent->events().of<KilledEvent>(), 2);
    const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->plan.status, PlanStatus::kFound);
    const auto report = agent->Step(FakeBatch(4));
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_GT(report->recomputed_forwards, 0);
  });
  EXPECT_EQ(service_.computed, 1);
}

// Off on a single rank, before Plan was ever called: it trains plain alone, and what all say later is said by all.
TEST_F(AgentRanksTest, SwitchedOffARankTrainsPlainBeforeAllHavePlanned) {
  off_[2] = true;
  OnAllRanks([&](int rank) {
    auto agent = MakeAgent(rank);
    const absl::Status status = agent->Step(FakeBatch(4)).status();
    EXPECT_EQ(status.code(),
              rank == 2 ? absl::StatusCode::kOk : absl::StatusCode::kFailedPrecondition);
    if (rank == 2) off_[2] = false;
    EXPECT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
    for (int step = 0; step < 10; ++step) EXPECT_TRUE(agent->Step(FakeBatch(4)).ok());
    EXPECT_EQ(agent->steps().plain, rank == 2 ? 1 : 0);
  });
}

#ifdef STOWAGE_TEST_GLOO
// The switch of one rank is on for three steps: all train plain from the next one on, for as many, and then by their plan.
TEST_F(AgentRanksTest, OverAGroupTheSwitchOfOneIsThatOfAll) {
  for (const bool whole : {true, false}) {
    OnGlooRanks(kRanks, [&](int rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
      auto agent = MakeAgent(rank, MakeGroupAgreement(std::move(group)).value());
      const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7});
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->plan.status, PlanStatus::kFound);
      for (int step = 0; step < 10; ++step) {
        if (rank == 1) off_[1] = 2 <= step && step < 5;
        const int64_t before = agent->steps().plain;
        const absl::Status status =
            whole ? agent->Step(FakeBatch(4)).status() : agent->Forward(FakeBatch(4)).status();
        ASSERT_TRUE(status.ok()) << status;
        // The word of a step that the caller ends goes round before the next one.
        const int first = whole ? 3 : 2;
        EXPECT_EQ(agent->steps().plain - before, first <= step && step < first + 3 ? 1 : 0)
            << rank << " " << step;
      }
      EXPECT_EQ(agent->events().of<KilledEvent>(), 2);
    });
  }
}

// One rank runs out of memory in its third step: it ends that by the least plan, and the next one is smaller for all.
TEST_F(AgentRanksTest, OverAGroupAllPlanLessBeforeTheNextStep) {
  std::string tokens[kRanks];
  OnGlooRanks(kRanks, [&](int rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    auto agent = MakeAgent(rank, MakeGroupAgreement(std::move(group)).value());
    const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0});
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (int step = 0; step < 6; ++step) {
      if (rank == 1 && step == 2) {
        worlds_[1].room = Bytes(plan->plan.prediction.peak.value() * 85 / 100);
      }
      const absl::StatusOr<StepReport> report = agent->Step(FakeBatch(4));
      ASSERT_TRUE(report.ok()) << rank << " " << step << report.status();
      EXPECT_EQ(report->recomputed_forwards > 0, step >= 3 || (rank == 1 && step == 2))
          << rank << " " << step;
    }
    EXPECT_EQ(agent->steps().finished, rank == 1 ? 1 : 0);
    EXPECT_EQ(agent->events().of<AdoptedEvent>(), 2);
    tokens[rank] = agent->Token();
  });
  for (const std::string& token : tokens) EXPECT_EQ(token, tokens[0]);
  EXPECT_NE(tokens[0], "");
}

// Over a group, with a count of how often all texts go round.
class CountingAgreement : public PlanAgreement {
 public:
  explicit CountingAgreement(c10::intrusive_ptr<c10d::ProcessGroup> group)
      : inner_(MakeGroupAgreement(std::move(group)).value()) {}
  int rank() const override { return inner_->rank(); }
  int ranks() const override { return inner_->ranks(); }
  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
    ++gathers;
    return inner_->Gather(mine);
  }
  absl::StatusOr<std::string> Broadcast(const std::string& mine) override {
    return inner_->Broadcast(mine);
  }
  absl::StatusOr<std::vector<int64_t>> Greatest(const std::vector<int64_t>& mine) override {
    return inner_->Greatest(mine);
  }
  bool votes() const override { return inner_->votes(); }
  absl::Status Say(uint32_t word) override { return inner_->Say(word); }
  absl::StatusOr<uint32_t> Hear() override { return inner_->Hear(); }

  int gathers = 0;

 private:
  const std::unique_ptr<PlanAgreement> inner_;
};

// A batch that no plan is for: one rank plans alone, within what all have, until all are at such a batch.
TEST_F(AgentRanksTest, OverAGroupARankThatMeetsALargerBatchPlansForIt) {
  std::string tokens[kRanks];
  OnGlooRanks(kRanks, [&](int rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    const auto agreement = std::make_shared<CountingAgreement>(std::move(group));
    auto agent = MakeAgent(rank, agreement);
    EXPECT_EQ(agent->Step(FakeBatch(4)).status().code(), absl::StatusCode::kFailedPrecondition);
    const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0});
    ASSERT_TRUE(plan.ok()) << plan.status();
    const std::string first = agent->Token();
    agreement->gathers = 0;
    // Of twelve steps two are larger on the one rank, then all are, on all.
    for (int step = 0; step < 12; ++step) {
      const bool larger = step >= 6 || (rank == 1 && (step == 1 || step == 3));
      // Another rank's memory runs out meanwhile: that is heard at once.
      if (rank == 2 && step == 3) {
        worlds_[2].room = Bytes(plan->plan.prediction.peak.value() * 85 / 100);
      }
      const absl::StatusOr<StepReport> report = agent->Step(FakeBatch(larger ? 6 : 4));
      ASSERT_TRUE(report.ok()) << rank << " " << step << report.status();
      if (larger) {
        EXPECT_GT(report->recomputed_forwards, 0) << rank << " " << step;
        EXPECT_LE(report->peak, plan->plan.budget);
      }
      const bool less = step >= 4;  // of all
      EXPECT_EQ(agent->Token() != first, larger || less) << rank << " " << step;
    }
    EXPECT_EQ(agent->steps().by_larger, 0);
    EXPECT_EQ(agent->steps().finished, rank == 2 ? 1 : 0);
    tokens[rank] = agent->Token();
  });
  for (const std::string& token : tokens) EXPECT_EQ(token, tokens[0]);
}

// Its memory is less than the budget: the plan that it has made alone becomes a smaller one, though no other rank is at that shape.
TEST_F(AgentRanksTest, OverAGroupARankPlansForLessAlone) {
  OnGlooRanks(kRanks, [&](int rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    auto agent = MakeAgent(rank, MakeGroupAgreement(std::move(group)).value());
    const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0});
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (rank == 1) worlds_[1].room = Bytes(plan->plan.budget.value() * 95 / 100);
    for (int step = 0; step < 6; ++step) {
      const bool larger = rank == 1 && step > 0;
      ASSERT_TRUE(agent->Step(FakeBatch(larger ? 6 : 4)).ok()) << rank << " " << step;
      // Those that its memory ends go on by the least plan.
      EXPECT_EQ(agent->steps().finished > 0, rank == 1) << rank << " " << step;
    }
    EXPECT_LE(agent->steps().finished, rank == 1 ? 2 : 0);
    EXPECT_NE(agent->Token(), "");
  });
}

// What communicates would wait for the others.
TEST_F(AgentRanksTest, NoRankMeasuresAloneWhatMayCommunicate) {
  OnAllRanks([&](int rank) {
    worlds_[rank].communicates = true;
    auto agent = MakeAgent(rank);
    ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0}).ok());
    if (rank == 1) {
      const absl::Status status = agent->Step(FakeBatch(6)).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(status.message()), HasSubstr("no rank measures alone"));
    }
    EXPECT_TRUE(agent->Step(FakeBatch(4)).ok());
    EXPECT_TRUE(agent->Plan(FakeBatch(6), ShareOfStoreAll{0.9}).ok());
  });
}

// One rank has kept its profile of before.
TEST_F(AgentRanksTest, AllRanksMeasureWhatMayCommunicateOrNone) {
  OnAllRanks([&](int rank) {
    worlds_[rank].communicates = true;
    auto agent = MakeAgent(rank);
    if (rank == 1) {
      const Profile kept = FakeProfile(FakeBatch(4), CostSource::kMeasured);
      ASSERT_TRUE(agent->UseProfile(FakeBatch(4), kept).ok());
    }
    ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
  });
  for (const FakeWorld& world : worlds_) EXPECT_EQ(world.measured, worlds_[0].measured);
}

// Ending the step by another plan would begin with its first forward, for which nobody else comes.
TEST_F(AgentRanksTest, AStepThatHasCommunicatedIsNotBegunAgain) {
  OnAllRanks([&](int rank) {
    worlds_[rank].communicates = true;
    worlds_[rank].costs = [](ChainSpec* spec) { spec->stages[2].must_keep = true; };
    auto agent = MakeAgent(rank);
    const auto plan = agent->Plan(FakeBatch(4), ShareOfStoreAll{1.0});
    ASSERT_TRUE(plan.ok()) << plan.status();
    for (const size_t failed_at : {size_t{1}, size_t{2}, size_t{9}}) {
      worlds_[rank].room = Bytes(plan->plan.prediction.peak.value() * 85 / 100);
      worlds_[rank].failed_at = failed_at;
      const absl::Status status = agent->Step(FakeBatch(4)).status();
      EXPECT_EQ(status.ok(), failed_at < 2) << rank << " " << failed_at << status;
    }
    EXPECT_EQ(agent->steps().finished, 1);
  });
}

// A loop with a backward of its own says of a step before the next one.
TEST_F(AgentRanksTest, OverAGroupWhatABackwardFindsOutIsSaid) {
  OnGlooRanks(kRanks, [&](int rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    auto agent = MakeAgent(rank, MakeGroupAgreement(std::move(group)).value());
    ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
    if (rank == 2) worlds_[rank].slower = 2;
    for (int step = 0; step < 6; ++step) {
      const auto outputs = agent->Forward(FakeBatch(4));
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      outputs->front().sum().backward();
      // Drift shows after a window of four steps.
      EXPECT_EQ(agent->events().of<AdoptedEvent>(), step < 4 ? 1 : 2) << rank << " " << step;
    }
  });
}

// Steps of a smaller shape by a plan that is to be made again do not ask each time; the wish stays.
TEST_F(AgentRanksTest, OverAGroupAWishWaitsForStepsOfItsShape) {
  OnGlooRanks(kRanks, [&](int rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    const auto agreement = std::make_shared<CountingAgreement>(std::move(group));
    auto agent = MakeAgent(rank, agreement);
    ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
    worlds_[rank].slower = 2;
    for (int step = 0; step < 4; ++step) ASSERT_TRUE(agent->Step(FakeBatch(4)).ok());
    EXPECT_EQ(agent->events().of<ReplanEvent>(), 1);
    agreement->gathers = 0;
    for (int step = 0; step < 10; ++step) ASSERT_TRUE(agent->Step(FakeBatch(2)).ok());
    EXPECT_EQ(agreement->gathers, 2);  // in the first one, and after a window of four
    EXPECT_EQ(agent->events().of<AdoptedEvent>(), 1);
    ASSERT_TRUE(agent->Step(FakeBatch(4)).ok());
    EXPECT_EQ(agent->events().of<AdoptedEvent>(), 2);
  });
}

// It closes its connections, by which the others know.
TEST_F(AgentRanksTest, OverAGroupARankThatIsGoneEndsTheStepsOfAll) {
  OnGlooRanks(kRanks, [&](int rank, c10::intrusive_ptr<c10d::ProcessGroup> group) {
    auto agent = MakeAgent(rank, MakeGroupAgreement(std::move(group)).value());
    ASSERT_TRUE(agent->Plan(FakeBatch(4), ShareOfStoreAll{0.7}).ok());
    ASSERT_TRUE(agent->Step(FakeBatch(4)).ok());
    if (rank == 1) return;
    absl::Status status;
    for (int step = 0; step < 4 && status.ok(); ++step) {
      status = agent->Step(FakeBatch(4)).status();
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << rank << " " << status;
  });
}
#endif

}  // namespace
}  // namespace stowage
