// Real networks with known optimal makespans: persistent schedules, 500 slots, budget = floor(share
// * store-all peak).
#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

#include "proto/codec/codec.h"
#include "solvers/planner.h"

namespace stowage {
namespace {

struct Known {
  const char* file;
  int64_t store_all_peak;
  int64_t ideal;
  int64_t makespan[4];  // at 30%, 50%, 70%, 90%
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
  }
}

// The planner's own choice of slots, or the exact recurrence, is never worse.
TEST_P(KnownValues, ThePlannersChoiceIsNoWorse) {
  const Profile profile = ReadProfile(GetParam().file);
  if (std::get<Chain>(profile.problem).length() > 100)
    GTEST_SKIP() << "seconds per table; the values above hold there";
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
    ::testing::Values(
        Known{"chain_resnet50.json",
              5574966784,
              247346263,
              {310802919, 275554387, 261873482, 253865858}},
        Known{"chain_gpt_24.json",
              67959947268,
              5245273555,
              {6505162567, 6173612827, 5842063087, 5510513347}},
        Known{"chain_rand_L50_s1.json", 1018278761, 7051695, {7672301, 7311259, 7172315, 7114081}},
        Known{"chain_gpt_339.json",
              893713547268,
              67908174415,
              {84021491779, 79578725263, 79578725263, 74075145214}}),
    [](const auto& param) {
      const std::string file = param.param.file;
      return file.substr(0, file.find('.'));
    });

}  // namespace
}  // namespace stowage
