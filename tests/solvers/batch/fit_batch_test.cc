// Batch sizes, against looking at every one of them.
#include "solvers/batch/fit_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "solvers/planner.h"
#include "tests/server/support/profiles.h"

namespace stowage::testing {
namespace {

using ::testing::HasSubstr;

// Tensors and times grow with the batch; a part of each time does not.
Profile AtBatch(int64_t batch, int stages = 5) {
  ProfileShape shape;
  shape.stages = stages;
  shape.output = 100 * batch;
  shape.forward_time = 500 + 10 * batch;
  return ChainProfile(shape);
}

BatchModel ModelOf(const std::vector<int64_t>& batches) {
  std::vector<BatchProfile> profiles;
  for (const int64_t batch : batches) profiles.push_back({batch, AtBatch(batch)});
  return *BatchModel::Create(std::move(profiles));
}

SolveProfile Within(Bytes budget) {
  return [budget](const Profile& profile) { return MakePlan(profile, budget, PlanOptions()); };
}

TEST(BatchModel, BetweenAndBeyondTheProfilesIsWhatTheLinesSay) {
  const BatchModel model = ModelOf({8, 2, 16});
  for (const int64_t batch : {1, 2, 5, 8, 13, 16, 40}) {
    const auto profile = model.At(batch);
    ASSERT_TRUE(profile.ok()) << profile.status();
    const Chain& got = std::get<Chain>(profile->problem);
    const Profile direct = AtBatch(batch);
    const Chain& wanted = std::get<Chain>(direct.problem);
    for (int l = 1; l <= wanted.length(); ++l) {
      EXPECT_EQ(got.stage(l).forward_time, wanted.stage(l).forward_time);
      EXPECT_EQ(got.stage(l).saved, wanted.stage(l).saved);
      EXPECT_EQ(got.stage(l).backward_overhead, wanted.stage(l).backward_overhead);
    }
    EXPECT_EQ(model.Within(batch), batch >= 2 && batch <= 16);
  }
}

TEST(BatchModel, RoundsUpAndNeverBelowZero) {
  ProfileShape small, large;
  small.output = 3;
  small.forward_time = 100;
  large.output = 10;
  large.forward_time = 90;
  const auto model = BatchModel::Create({{1, ChainProfile(small)}, {3, ChainProfile(large)}});
  ASSERT_TRUE(model.ok());
  const auto two = model->At(2), far = model->At(1000);
  ASSERT_TRUE(two.ok() && far.ok());
  EXPECT_EQ(std::get<Chain>(two->problem).stage(1).output, Bytes(7));  // 6.5
  EXPECT_EQ(std::get<Chain>(far->problem).stage(1).forward_time, Nanos(0));
}

Profile Stopping(int64_t time, int64_t overhead) {
  Profile profile = AtBatch(1);
  ChainSpec spec = std::get<Chain>(profile.problem).spec();
  for (Stage& stage : spec.stages) {
    stage.forward_time = Nanos(10 * time);
    stage.recompute_saving_time = Nanos(time);
    stage.recompute_saving_overhead = Bytes(overhead);
  }
  profile.problem = *Chain::Create(std::move(spec));
  return profile;
}

TEST(BatchModel, StopsEarlyWhereBothNeighboursDo) {
  const auto model =
      BatchModel::Create({{1, Stopping(10, 4)}, {3, Stopping(30, 8)}, {9, AtBatch(1)}});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto first = [&model](int64_t batch) {
    return std::get<Chain>(model->At(batch)->problem).stage(1);
  };
  EXPECT_EQ(first(2).recompute_saving_time, Nanos(20));
  EXPECT_EQ(first(2).recompute_saving_overhead, Bytes(6));
  EXPECT_FALSE(first(4).stops());
}

// Lines of their own may cross those of what bounds them.
TEST(BatchModel, AnEarlyStopTakesNoMoreThanAWholeForward) {
  Profile small = Stopping(10, 100), large = Stopping(10, 0);
  ChainSpec spec = std::get<Chain>(large.problem).spec();
  for (Stage& stage : spec.stages) stage.recompute_saving_time = stage.forward_time;
  spec.stages[0].output = Bytes(0);
  large.problem = *Chain::Create(spec);
  const auto model = BatchModel::Create({{2, small}, {3, large}});
  ASSERT_TRUE(model.ok()) << model.status();
  // Times rise to 190 ns of 100, overheads fall below none.
  const auto beyond = model->At(4);
  ASSERT_TRUE(beyond.ok()) << beyond.status();
  const Stage& far = std::get<Chain>(beyond->problem).stage(1);
  EXPECT_EQ(far.recompute_saving_time, Nanos(100));
  EXPECT_EQ(far.recompute_saving_overhead, Bytes(0));
  // 200 bytes of overhead, the output 200.
  const auto below = model->At(1);
  ASSERT_TRUE(below.ok()) << below.status();
  const Stage& near = std::get<Chain>(below->problem).stage(1);
  EXPECT_EQ(near.output, Bytes(200));
  EXPECT_EQ(near.recompute_saving_time, Nanos(0));
  EXPECT_EQ(near.recompute_saving_overhead, Bytes(200));
}

TEST(BatchModel, GraphsStopEarlyAsChainsDo) {
  const auto stopping = [](int64_t time) {
    Profile profile = GraphProfile(4, 70, 10);
    GraphSpec spec = std::get<Graph>(profile.problem).spec();
    spec.vertices[1].forward_time = Nanos(time);
    spec.vertices[1].recompute_saving_time = Nanos(time);
    profile.problem = *Graph::Create(std::move(spec));
    return profile;
  };
  const auto model = BatchModel::Create({{1, stopping(5)}, {3, stopping(9)}});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto two = model->At(2);
  ASSERT_TRUE(two.ok()) << two.status();
  const Graph& graph = std::get<Graph>(two->problem);
  EXPECT_EQ(graph.vertex(1).recompute_saving_time, Nanos(7));
  EXPECT_FALSE(graph.vertex(2).stops());
}

TEST(BatchModel, GraphsKeepTheirInputs) {
  const auto model =
      BatchModel::Create({{1, GraphProfile(6, 70, 10)}, {2, GraphProfile(6, 70, 10)}});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto at = model->At(7);
  ASSERT_TRUE(at.ok()) << at.status();
  const Graph& graph = std::get<Graph>(at->problem);
  ASSERT_EQ(graph.size(), 6);
  EXPECT_EQ(graph.vertex(3).id, 100);
  EXPECT_EQ(graph.vertex(3).inputs[0].vertex, 2);
}

TEST(BatchModel, AnotherStructureIsRefusedWithItsField) {
  const auto message = [](std::vector<BatchProfile> profiles) {
    const absl::Status status = BatchModel::Create(std::move(profiles)).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(message({{1, AtBatch(1)}}), HasSubstr("profiles"));
  EXPECT_THAT(message({{1, AtBatch(1)}, {1, AtBatch(2)}}), HasSubstr("profiles[1].batch_size"));
  EXPECT_THAT(message({{1, AtBatch(1)}, {0, AtBatch(2)}}), HasSubstr("profiles[1].batch_size"));
  EXPECT_THAT(message({{1, AtBatch(1)}, {2, AtBatch(2)}, {3, AtBatch(3, 6)}}),
              HasSubstr("profiles[2].profile.chain.stages"));
  EXPECT_THAT(message({{1, AtBatch(1)}, {2, GraphProfile(5, 1, 1)}}), HasSubstr("kind"));
  ChainSpec other = std::get<Chain>(AtBatch(2).problem).spec();
  other.stages[3].random = true;
  Profile random = AtBatch(2);
  random.problem = *Chain::Create(other);
  EXPECT_THAT(message({{1, AtBatch(1)}, {2, random}}),
              HasSubstr("profiles[1].profile.chain.stages[3].random"));
}

TEST(FitBatch, FindsWhatLookingAtEveryBatchFinds) {
  constexpr int64_t kMost = 150;
  const BatchModel model = ModelOf({4, 12});
  for (const int64_t budget : {500, 1500, 6000, 20000, 70000, 1000000}) {
    const SolveProfile solve = Within(Bytes(budget));
    int64_t largest = 0;
    double best = 0;
    for (int64_t batch = 1; batch <= kMost; ++batch) {
      const auto plan = solve(*model.At(batch));
      ASSERT_TRUE(plan.ok());
      if (plan->status != PlanStatus::kFound) continue;
      largest = batch;
      best = std::max(best, static_cast<double>(batch) * 1e9 /
                                static_cast<double>(plan->prediction.makespan.value()));
    }
    const auto fit = FitBatch(model, kMost, solve);
    ASSERT_TRUE(fit.ok()) << fit.status();
    EXPECT_EQ(fit->largest, largest) << budget;
    EXPECT_GE(fit->samples_per_second, 0.98 * best) << budget;
    EXPECT_LE(fit->samples_per_second, best) << budget;
    EXPECT_LE(fit->points.size(), 60u);
    for (size_t i = 0; i < fit->points.size(); ++i) {
      const BatchPoint& point = fit->points[i];
      EXPECT_GT(point.batch_size, i == 0 ? 0 : fit->points[i - 1].batch_size);
      EXPECT_EQ(point.fits, point.batch_size <= largest);
      EXPECT_LE(point.peak, Bytes(budget));
      EXPECT_EQ(point.within_profiles, point.batch_size >= 4 && point.batch_size <= 12);
    }
  }
}

TEST(FitBatch, ProfilesWithoutTimesTellTheLargestAlone) {
  ProfileShape small, large;
  small.timed = large.timed = false;
  large.output = 200;
  const auto model = BatchModel::Create({{1, ChainProfile(small)}, {2, ChainProfile(large)}});
  const auto fit = FitBatch(*model, 1000, Within(Bytes(10000)));
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_GT(fit->largest, 1);
  EXPECT_EQ(fit->fastest, 0);
  EXPECT_EQ(fit->samples_per_second, 0.0);
}

TEST(FitBatch, AGapIsCrossedWhereTheNextBatchesFit) {
  const BatchModel model = ModelOf({1, 2});
  const auto with_gap = [&](const Profile& profile) {
    Plan plan;
    const int64_t batch = std::get<Chain>(profile.problem).stage(1).output.value() / 100;
    const bool fits = batch <= 20 && batch != 11;
    plan.status = fits ? PlanStatus::kFound : PlanStatus::kProvenInfeasible;
    plan.prediction.makespan = Nanos(1000);
    return absl::StatusOr<Plan>(plan);
  };
  EXPECT_EQ(FitBatch(model, 1000, with_gap)->largest, 20);
  EXPECT_EQ(FitBatch(model, 15, with_gap)->largest, 15);
}

// A batch whose bytes no profile can say fits nowhere; another error is no answer about the batch.
TEST(FitBatch, ErrorsOfAModelAreItsErrorsUnlessTheBatchIsTooLarge) {
  class UpToTen final : public BatchSource {
   public:
    explicit UpToTen(absl::Status beyond) : model_(ModelOf({1, 2})), beyond_(std::move(beyond)) {}
    absl::StatusOr<Profile> At(int64_t batch) const override {
      if (batch > 10) return beyond_;
      return model_.At(batch);
    }
    bool timeless() const override { return model_.timeless(); }
    bool Within(int64_t batch) const override { return model_.Within(batch); }
    std::vector<int64_t> Suggested() const override { return {}; }

   private:
    const BatchModel model_;
    const absl::Status beyond_;
  };
  const SolveProfile solve = Within(Bytes(1000000000));
  const auto fit = FitBatch(UpToTen(absl::InvalidArgumentError("")), 100, solve);
  ASSERT_TRUE(fit.ok()) << fit.status();
  EXPECT_EQ(fit->largest, 10);
  EXPECT_TRUE(absl::IsInternal(FitBatch(UpToTen(absl::InternalError("")), 100, solve).status()));
}

TEST(FitBatch, ErrorsOfASolveAreItsErrors) {
  const auto fails = [](const Profile&) { return absl::StatusOr<Plan>(absl::CancelledError("")); };
  EXPECT_TRUE(absl::IsCancelled(FitBatch(ModelOf({1, 2}), 10, fails).status()));
}

}  // namespace
}  // namespace stowage::testing
