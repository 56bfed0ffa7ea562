// Real networks with known optimal makespans: persistent schedules, 500 slots, budget = floor(share
// * store-all peak).
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "proto/codec/codec.h"
#include "solvers/graph/linearize.h"
#include "solvers/planner.h"
#include "tests/solvers/reference_recurrence.h"

namespace stowage {
namespace {

struct Known {
  const char* file;
  int64_t store_all_peak;
  int64_t ideal;
  int64_t makespan[4];  // at 30%, 50%, 70%, 90%
  const char* digest;   // of the schedule at 50%
};

constexpr double kShares[4] = {0.3, 0.5, 0.7, 0.9};

class KnownValues : public ::testing::TestWithParam<Known> {};

Profile ReadProfile(const std::string& file) {
  std::ifstream in(std::string(STOWAGE_SOURCE_DIR) + "/tests/data/" + file);
  std::stringstream text;
  text << in.rdbuf();
  const absl::StatusOr<v1::Profile> message = ProfileFromJson(text.str());
  EXPECT_TRUE(message.ok()) << message.status();
  const absl::StatusOr<Profile> profile = FromProto(*message);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return *profile;
}

TEST_P(KnownValues, FiveHundredSlotsGiveThem) {
  const Profile profile = ReadProfile(GetParam().file);
  PlanOptions options;
  options.solver = "optimal_persistent";
  options.solve.slots = 500;
  for (size_t i = 0; i < 4; ++i) {
    const absl::StatusOr<Plan> plan = MakePlan(profile, ShareOfStoreAll{kShares[i]}, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->status, PlanStatus::kFound) << plan->explanation;
    EXPECT_EQ(plan->bounds.store_all_peak.value(), GetParam().store_all_peak);
    EXPECT_EQ(plan->bounds.store_all_makespan.value(), GetParam().ideal);
    EXPECT_EQ(plan->prediction.makespan.value(), GetParam().makespan[i]) << kShares[i];
    EXPECT_LE(plan->prediction.peak, plan->budget);
    // Equal input gives equal plans, on any machine.
    if (i == 1) {
      EXPECT_EQ(ScheduleDigest(plan->schedule).ToHex(), GetParam().digest);
    }
  }
}

// The planner's own choice of slots, or the exact recurrence, is never worse.
TEST_P(KnownValues, ThePlannersChoiceIsNoWorse) {
  const Profile profile = ReadProfile(GetParam().file);
  for (size_t i = 0; i < 4; ++i) {
    const absl::StatusOr<Plan> plan = MakePlan(profile, ShareOfStoreAll{kShares[i]}, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_LE(plan->prediction.makespan.value(), GetParam().makespan[i]) << kShares[i];
    RecordProperty("makespan_" + std::to_string(i),
                   std::to_string(plan->prediction.makespan.value()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Networks, KnownValues,
    ::testing::Values(Known{"chain_resnet50.json",
                            5574966784,
                            247346263,
                            {310802919, 275554387, 261873482, 253865858},
                            "402b37076bda25d275f9ff96110db89aac8fde67f9671bf0ea071f02cf57efd2"},
                      Known{"chain_gpt_24.json",
                            67959947268,
                            5245273555,
                            {6505162567, 6173612827, 5842063087, 5510513347},
                            "d8753936c04a985bd4a31355748fd46ef163cb778fd2ec20960fa43e18409ad1"},
                      Known{"chain_rand_L50_s1.json",
                            1018278761,
                            7051695,
                            {7672301, 7311259, 7172315, 7114081},
                            "bfffd69c35b7b188395263291a57eb6fb76f7ed180320529828c33d9c9dd50ad"},
                      Known{"chain_gpt_339.json",
                            893713547268,
                            67908174415,
                            {84021491779, 79578725263, 79578725263, 74075145214},
                            "48e3a72b39db9373ab1fc98d33f0f1f249b3b403e92052ce878d3ff4489fa34e"}),
    [](const auto& param) {
      const std::string file = param.param.file;
      return file.substr(0, file.find('.'));
    });

// Every profile of a real network against the recurrence as published, at the same slots; graphs as
// the chains that they are cut into.
class Profiles : public ::testing::TestWithParam<const char*> {};

absl::StatusOr<Chain> ChainOf(const Problem& problem) {
  if (const Chain* chain = std::get_if<Chain>(&problem)) return *chain;
  absl::StatusOr<LinearizedGraph> linear = Linearize(std::get<Graph>(problem));
  if (!linear.ok()) return linear.status();
  return std::move(linear->chain);
}

TEST_P(Profiles, TablesEqualTheRecurrence) {
  const absl::StatusOr<Chain> chain = ChainOf(ReadProfile(GetParam()).problem);
  ASSERT_TRUE(chain.ok()) << chain.status();
  PlanOptions options;
  options.solver = "optimal_persistent";
  options.solve.slots = 500;
  for (const double share : kShares) {
    if (chain->length() > 100 && share != 0.5) continue;  // the recurrence takes seconds
    const absl::StatusOr<Bytes> budget = ResolveBudget(*chain, ShareOfStoreAll{share}, options);
    ASSERT_TRUE(budget.ok()) << budget.status();
    const absl::StatusOr<Plan> plan = MakePlan(*chain, *budget, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    const int64_t unit = budget->value() / options.solve.slots;
    const int64_t slots = budget->value() / unit;
    const std::optional<int64_t> overhead =
        testing::ReferenceRecurrence(*chain, unit, slots).Overhead(slots);
    ASSERT_EQ(plan->status == PlanStatus::kFound, overhead.has_value()) << share;
    if (!overhead) continue;
    EXPECT_EQ(plan->prediction.makespan - chain->ideal_time(), Nanos(*overhead)) << share;
    EXPECT_GT(*overhead, 0) << share;
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, Profiles,
                         ::testing::Values("chain_resnet50.json", "chain_gpt_24.json",
                                           "chain_rand_L50_s1.json", "chain_gpt_339.json",
                                           "graph_resnet50.json", "graph_inception_v3.json",
                                           "graph_vit_b_16.json"),
                         [](const auto& param) {
                           const std::string file = param.param;
                           return file.substr(0, file.find('.'));
                         });

}  // namespace
}  // namespace stowage
