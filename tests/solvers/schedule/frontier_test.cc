#include "solvers/schedule/frontier.h"
#include "solvers/schedule/evaluator.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/strings/escaping.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/varint.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

FrontierInfo Info(Bytes least) {
  FrontierInfo info;
  info.solver = "drawn";
  info.schedule_class = "whatever the dice say";
  info.least_budget = least;
  info.slots = 7;
  return info;
}

Frontier DrawnFrontier(const Chain& chain, int draws, std::mt19937_64* rng) {
  FrontierBuilder builder(chain);
  for (int i = 0; i < draws; ++i) {
    EXPECT_TRUE(builder.Add(testing::RandomSchedule(chain, rng)).ok());
  }
  EXPECT_TRUE(builder.Add(StoreAllSchedule(chain)).ok());
  return builder.Build(Info(Bytes(1)));
}

// Of many points, those stay that memory has place for: the first, the last, and what gains most between them.
TEST(Frontier, PointsStayWithinTheMemoryGiven) {
  std::mt19937_64 rng(8);
  testing::RandomChainOptions options;
  options.max_size = 100000;
  options.max_time = 100000;
  const Chain chain = testing::RandomChain(40, options, &rng);
  constexpr Bytes kMemory(2000);
  FrontierBuilder all(chain), few(chain, kMemory);
  for (int k = 0; k < 400; ++k) {
    const Schedule schedule = testing::RandomSchedule(chain, &rng);
    ASSERT_TRUE(all.Add(schedule).ok() && few.Add(schedule).ok());
  }
  FrontierInfo info = Info(Bytes(1));
  info.exact = true;
  const Frontier whole = all.Build(info), thin = few.Build(info);
  EXPECT_TRUE(whole.info().exact);
  EXPECT_FALSE(thin.info().exact);
  ASSERT_GT(whole.points().size(), thin.points().size());
  ASSERT_GE(thin.points().size(), 2u);
  int64_t bytes = 0;
  for (const Frontier::Point& point : thin.points()) {
    bytes += static_cast<int64_t>(sizeof(point)) + point.schedule.bytes();
    EXPECT_EQ(point.makespan, Evaluator(chain).Run(point.schedule.Unpack())->makespan);
  }
  EXPECT_LE(bytes, kMemory.value());
  EXPECT_EQ(thin.points().front().peak, whole.points().front().peak);
  EXPECT_EQ(thin.points().back().makespan, whole.points().back().makespan);
}

TEST(Frontier, HoldsTheBestOfWhatWasAddedAtEveryBudget) {
  std::mt19937_64 rng(1);
  for (int i = 0; i < 100; ++i) {
    const Chain chain = testing::RandomChain(2 + i % 6, {}, &rng);
    FrontierBuilder builder(chain);
    std::vector<Simulation> added;
    for (int k = 0; k < 60; ++k) {
      const Schedule schedule = testing::RandomSchedule(chain, &rng);
      ASSERT_TRUE(builder.Add(schedule).ok());
      added.push_back(*Evaluator(chain).Run(schedule));
    }
    const Frontier frontier = builder.Build(Info(Bytes(0)));
    for (size_t k = 1; k < frontier.points().size(); ++k) {
      EXPECT_LT(frontier.points()[k - 1].peak, frontier.points()[k].peak);
      EXPECT_GT(frontier.points()[k - 1].makespan, frontier.points()[k].makespan);
    }
    for (const Simulation& s : added) {
      int64_t best = INT64_MAX;
      for (const Simulation& other : added) {
        if (other.peak <= s.peak) best = std::min(best, other.makespan.value());
      }
      ASSERT_NE(frontier.At(s.peak), nullptr);
      EXPECT_EQ(frontier.At(s.peak)->makespan.value(), best);
      EXPECT_EQ(builder.MakespanAt(s.peak).value(), best);
    }
  }
}

TEST(Frontier, MakesPlansThatTheEvaluatorAccepts) {
  std::mt19937_64 rng(2);
  const Chain chain = testing::RandomChain(6, {}, &rng);
  const Frontier frontier = DrawnFrontier(chain, 200, &rng);
  ASSERT_GT(frontier.points().size(), 3u);
  for (const Frontier::Point& point : frontier.points()) {
    absl::StatusOr<Plan> plan = frontier.PlanAt(point.peak);
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_EQ(plan->status, PlanStatus::kFound);
    ASSERT_TRUE(ValidatePlan(chain, &*plan).ok());
    EXPECT_EQ(plan->prediction.makespan, point.makespan);
    EXPECT_EQ(plan->prediction.peak, point.peak);
  }
}

TEST(Frontier, SaysInfeasibleOnlyBelowTheProvenLeast) {
  std::mt19937_64 rng(3);
  const Chain chain = testing::RandomChain(6, {}, &rng);
  FrontierBuilder builder(chain);
  ASSERT_TRUE(builder.Add(StoreAllSchedule(chain)).ok());
  const Bytes peak = Evaluator(chain).Run(StoreAllSchedule(chain))->peak;
  const Frontier frontier = builder.Build(Info(peak - Bytes(2)));
  EXPECT_EQ(frontier.PlanAt(peak).status, PlanStatus::kFound);
  EXPECT_EQ(frontier.PlanAt(peak - Bytes(1)).status, PlanStatus::kNotFound);
  EXPECT_EQ(frontier.PlanAt(peak - Bytes(2)).status, PlanStatus::kNotFound);
  EXPECT_EQ(frontier.PlanAt(peak - Bytes(3)).status, PlanStatus::kProvenInfeasible);
  EXPECT_EQ(frontier.PlanAt(peak - Bytes(3)).bounds.least_budget, peak - Bytes(2));
}

TEST(Frontier, ThinningLosesNoMoreThanItsTolerance) {
  std::mt19937_64 rng(4);
  testing::RandomChainOptions options;
  options.max_time = 1000;
  const Chain chain = testing::RandomChain(7, options, &rng);
  FrontierBuilder builder(chain);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(builder.Add(testing::RandomSchedule(chain, &rng)).ok());
  }
  const Frontier all = builder.Build(Info(Bytes(0)));
  const Frontier thin = builder.Build(Info(Bytes(0)), 0.05);
  EXPECT_LT(thin.points().size(), all.points().size());
  EXPECT_EQ(thin.points().back().makespan, all.points().back().makespan);
  for (const Frontier::Point& point : all.points()) {
    EXPECT_GE(static_cast<double>(point.makespan.value()),
              0.95 * static_cast<double>(thin.At(point.peak)->makespan.value()));
  }
}

std::vector<PointCost> Costs(int count, int64_t bytes) {
  std::vector<PointCost> costs;
  for (int i = 0; i < count; ++i) costs.push_back({Nanos(1000000 - 100 * i), bytes});
  return costs;
}

TEST(ChooseCompact, KeepsAllOfASmallFrontier) {
  EXPECT_TRUE(ChooseCompact({}).empty());
  EXPECT_EQ(ChooseCompact(Costs(1, int64_t{1} << 40)), (std::vector<size_t>{0}));
  EXPECT_EQ(ChooseCompact(Costs(600, 100)).size(), 600u);
}

TEST(ChooseCompact, BoundsPointsAndBytesAndKeepsBothEnds) {
  for (const int64_t bytes : {int64_t{1}, int64_t{100000}, int64_t{1} << 22, int64_t{1} << 40}) {
    const std::vector<PointCost> costs = Costs(5000, bytes);
    const std::vector<size_t> chosen = ChooseCompact(costs);
    ASSERT_GE(chosen.size(), 2u);
    EXPECT_EQ(chosen.front(), 0u);
    EXPECT_EQ(chosen.back(), costs.size() - 1);
    EXPECT_LE(chosen.size(), 600u);
    if (bytes <= int64_t{1} << 23) {
      EXPECT_LE(static_cast<int64_t>(chosen.size()) * bytes, int64_t{16} << 20);
    }
    // No more is lost than need be.
    EXPECT_GT(chosen.size(), bytes <= 100000 ? 100u : 1u);
    for (size_t i = 1; i < chosen.size(); ++i) EXPECT_LT(chosen[i - 1], chosen[i]);
  }
}

// The schedules of the least budgets repeat everything many times over.
TEST(ChooseCompact, KeepsManyPointsBesideAFewWhoseSchedulesAreLong) {
  for (const int64_t longest : {int64_t{8} << 20, int64_t{40} << 20}) {
    std::vector<PointCost> costs;
    for (int i = 0; i < 12; ++i) {
      costs.push_back({Nanos(int64_t{1} << (36 - i)), longest >> i, Bytes(1000 + i)});
    }
    for (int i = 0; i < 400; ++i) {
      costs.push_back({Nanos((1 << 24) - 10000 * i), 100000, Bytes(1012 + 100 * i)});
    }
    const std::vector<size_t> chosen = ChooseCompact(costs);
    EXPECT_EQ(chosen.front(), 0u);
    EXPECT_EQ(chosen.back(), costs.size() - 1);
    int64_t bytes = 0;
    for (size_t c = 1; c < chosen.size(); ++c) {
      bytes += costs[chosen[c]].bytes;
      EXPECT_LT(chosen[c - 1], chosen[c]);
    }
    EXPECT_LE(bytes, longest > 1 << 24 ? int64_t{8} << 20 : (int64_t{16} << 20) - longest);
    EXPECT_GT(chosen.size(), 50u) << "of 83 short ones that fit beside the first";
  }
}

TEST(Frontier, IsExactWhenCompactOnlyIfNothingIsLeftOut) {
  ChainSpec spec;
  Stage stage;
  stage.forward_time = Nanos(1);
  stage.saved = stage.output = Bytes(1);
  spec.stages.assign(900, stage);
  for (size_t l = 0; l < spec.stages.size(); ++l) {
    spec.stages[l].saved = Bytes(1 + static_cast<int64_t>(l));
  }
  const Chain chain = *Chain::Create(spec);
  FrontierBuilder builder(chain);
  FrontierInfo info = Info(Bytes(0));
  info.exact = true;
  // Stages 1..k do not save at first.
  for (int k = 0; k <= 800; ++k) {
    Schedule schedule;
    for (int l = 1; l <= k; ++l) {
      schedule.push_back(l == 1 ? ForwardNoSave(l) : ForwardNoSaveFreeInput(l));
    }
    for (int l = k + 1; l <= 901; ++l) schedule.push_back(ForwardSave(l));
    for (int l = 901; l > k; --l) schedule.push_back(Backward(l));
    for (int l = 1; l <= k; ++l) schedule.push_back(ForwardSave(l));
    for (int l = k; l >= 1; --l) schedule.push_back(Backward(l));
    ASSERT_TRUE(builder.Add(schedule).ok());
    if (k == 100) {
      EXPECT_TRUE(builder.BuildCompact(info).info().exact);
      EXPECT_EQ(builder.BuildCompact(info).Encode(), builder.Build(info).Encode());
    }
  }
  const Frontier all = builder.Build(info), compact = builder.BuildCompact(info);
  ASSERT_GT(all.points().size(), 600u);
  EXPECT_LE(compact.points().size(), 600u);
  EXPECT_GT(compact.points().size(), 100u);
  EXPECT_TRUE(all.info().exact);
  EXPECT_FALSE(compact.info().exact);
  EXPECT_EQ(compact.points().front().peak, all.points().front().peak);
  EXPECT_EQ(compact.points().back().makespan, all.points().back().makespan);
}

TEST(Frontier, RoundTripsThroughItsBytes) {
  std::mt19937_64 rng(5);
  for (int i = 0; i < 50; ++i) {
    const Chain chain = testing::RandomChain(1 + i % 8, {}, &rng);
    const Frontier frontier = DrawnFrontier(chain, i, &rng);
    const std::string bytes = frontier.Encode();
    const absl::StatusOr<Frontier> back = Frontier::Decode(bytes);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->Encode(), bytes);
    EXPECT_EQ(back->info().schedule_class, "whatever the dice say");
    EXPECT_EQ(back->points().size(), frontier.points().size());
  }
}

// What is complete has the bytes that it had before there was another kind.
TEST(Frontier, SaysWhereADeadlineCutItShort) {
  std::mt19937_64 rng(7);
  const Chain chain = testing::RandomChain(6, {}, &rng);
  FrontierBuilder builder(chain);
  ASSERT_TRUE(builder.Add(StoreAllSchedule(chain)).ok());
  const Bytes peak = Evaluator(chain).Run(StoreAllSchedule(chain))->peak;
  FrontierInfo info = Info(peak - Bytes(2));
  const Frontier whole = builder.Build(info);
  info.search_complete = false;
  const Frontier cut = builder.Build(info);
  EXPECT_NE(cut.Encode(), whole.Encode());
  const Frontier back = *Frontier::Decode(cut.Encode());
  EXPECT_FALSE(back.info().search_complete);
  EXPECT_FALSE(back.info().exact);
  EXPECT_TRUE(Frontier::Decode(whole.Encode())->info().search_complete);
  EXPECT_FALSE(back.PlanAt(peak).search_complete);
  EXPECT_FALSE(back.PlanAt(peak - Bytes(1)).search_complete);
  // Whatever is searched.
  EXPECT_TRUE(back.PlanAt(peak - Bytes(3)).search_complete);
  EXPECT_TRUE(whole.PlanAt(peak).search_complete);
}

TEST(Frontier, GoldenBytes) {
  ChainSpec spec;
  Stage stage;
  stage.forward_time = Nanos(3);
  stage.backward_time = Nanos(4);
  stage.output = stage.output_gradient = Bytes(100);
  stage.saved = Bytes(300);
  spec.input = Bytes(10);
  spec.stages.assign(2, stage);
  const Chain chain = *Chain::Create(spec);
  FrontierBuilder builder(chain);
  ASSERT_TRUE(builder.Add(StoreAllSchedule(chain)).ok());
  ASSERT_TRUE(builder
                  .Add({ForwardNoSave(1), ForwardSave(2), ForwardSave(3), Backward(3), Backward(2),
                        ForwardSave(1), Backward(1)})
                  .ok());
  const std::string bytes = builder.Build(Info(Bytes(510))).Encode();
  const std::string expected(
      "\x01"  // version
      "\x05"
      "drawn"
      "\x15"
      "whatever the dice say"
      "\xfe\x03"          // least budget 510
      "\x00\x07"          // not exact, 7 slots
      "\x02"              // two points
      "\xfe\x03\x11\x0f"  // peak 510, makespan 17, 15 bytes of schedule
      "\x01\x02\x00"
      "\x00\x02\x01"
      "\x23\x00\x01"
      "\x00\x01\x00"
      "\x03\x00\x00"
      "\xc8\x01\x03\x06"  // 200 bytes more, 3 ns less, 6 bytes of schedule
      "\x00\x02\x02"
      "\x23\x00\x02",
      63);
  EXPECT_EQ(absl::BytesToHexString(bytes), absl::BytesToHexString(expected));
}

TEST(Frontier, RefusesTruncatedAndFlippedBytesOrKeepsTheirOrder) {
  std::mt19937_64 rng(6);
  const Chain chain = testing::RandomChain(5, {}, &rng);
  const std::string bytes = DrawnFrontier(chain, 50, &rng).Encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Frontier::Decode(bytes.substr(0, size)).ok()) << size;
  }
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
    const absl::StatusOr<Frontier> frontier = Frontier::Decode(flipped);
    if (!frontier.ok()) continue;
    EXPECT_EQ(frontier->Encode(), flipped);
    for (size_t k = 1; k < frontier->points().size(); ++k) {
      EXPECT_LT(frontier->points()[k - 1].peak, frontier->points()[k].peak);
    }
  }
}

// Each point is a few bytes that stand for millions of instructions: checked, not unpacked.
TEST(Frontier, DecodesManyLongSchedulesWithoutUnpackingThem) {
  ChainSpec spec;
  spec.stages.resize(1);
  const Chain chain = *Chain::Create(spec);
  std::string bytes = FrontierBuilder(chain).Build(FrontierInfo()).Encode();
  bytes.pop_back();  // no points
  const int points = 1000;
  AppendVarint(points, &bytes);
  std::string schedule("\x00\x02", 2);
  AppendVarint((1 << 24) - 1, &schedule);
  for (int i = 0; i < points; ++i) {
    AppendVarint(i == 0 ? 0 : 1, &bytes);
    AppendVarint(i == 0 ? points : 1, &bytes);
    AppendVarint(schedule.size(), &bytes);
    bytes += schedule;
  }
  const absl::StatusOr<Frontier> frontier = Frontier::Decode(bytes);
  ASSERT_TRUE(frontier.ok()) << frontier.status();
  EXPECT_EQ(frontier->points().size(), static_cast<size_t>(points));
}

TEST(FrontierBuilder, RefusesWhatTheEvaluatorRefuses) {
  std::mt19937_64 rng(7);
  const Chain chain = testing::RandomChain(3, {}, &rng);
  FrontierBuilder builder(chain);
  EXPECT_EQ(builder.Add(Schedule{Backward(1)}).code(), absl::StatusCode::kInternal);
}

TEST(ChooseCompact, OfFewPointsKeepsTheEndsAndWhatGainsMost) {
  std::vector<Frontier::Point> points;
  for (const int64_t time : {1000, 999, 998, 500, 499, 498, 100, 99}) {
    points.push_back({Bytes(static_cast<int64_t>(points.size())), Nanos(time), {}});
  }
  EXPECT_EQ(ChooseCompact(points, 8).size(), 8u);
  EXPECT_EQ(ChooseCompact(points, 4), (std::vector<size_t>{0, 3, 6, 7}));
  EXPECT_EQ(ChooseCompact(points, 2), (std::vector<size_t>{0, 7}));
  EXPECT_EQ(ChooseCompact(points, 1), (std::vector<size_t>{0}));
  EXPECT_TRUE(ChooseCompact(std::vector<Frontier::Point>(), 3).empty());
}

}  // namespace
}  // namespace stowage
