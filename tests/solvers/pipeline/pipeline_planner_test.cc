// Plans of pipelines against exhaustive search over the schedules of each stage, their combinations and where stages end.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "solvers/base/stop_token.h"
#include "solvers/chain/solvers.h"
#include "solvers/model/field_error.h"
#include "solvers/pipeline/pipeline.h"
#include "solvers/schedule/instance.h"
#include "tests/solvers/pipeline/naive_pipeline.h"
#include "tests/solvers/pipeline/stage_search.h"
#include "tests/solvers/random_chain.h"

namespace stowage::testing {
namespace {

constexpr int64_t kNever = INT64_MAX;

// What any plan can be, by everything that is written in this folder alone.
class Exhaustive {
 public:
  Exhaustive(const Chain& chain, const PipelineShape& shape) : chain_(chain), shape_(shape) {}

  // The least makespan, and the least that each device must have whatever the others have.
  struct Answer {
    int64_t makespan = kNever;
    std::vector<int64_t> needs;
  };
  Answer Of(const std::vector<int>& last_layers, const std::vector<Bytes>& budgets) {
    std::vector<std::vector<StageLabel>> labels;
    std::vector<int64_t> forward, backward;
    for (int s = 0; s < shape_.stages(); ++s) {
      const int first = s == 0 ? 1 : last_layers[static_cast<size_t>(s) - 1] + 1;
      const Chain stage = *PipelineStageChain(chain_, first, last_layers[static_cast<size_t>(s)]);
      labels.push_back(SearchStage(stage, s == shape_.stages() - 1));
      int64_t time = 0;
      for (int l = 1; l <= stage.length() + 1; ++l) time += stage.stage(l).forward_time.value();
      forward.push_back(time);
    }
    Answer answer;
    // By device, what fits: the times of its backwards.
    std::vector<std::vector<std::vector<int64_t>>> choices(static_cast<size_t>(shape_.devices));
    for (int d = 0; d < shape_.devices; ++d) {
      int64_t need = kNever;
      std::vector<StageLabel> now(static_cast<size_t>(shape_.chunks));
      const std::function<void(int)> choose = [&](int c) {
        if (c < shape_.chunks) {
          for (const StageLabel& label : labels[static_cast<size_t>(d + c * shape_.devices)]) {
            now[static_cast<size_t>(c)] = label;
            choose(c + 1);
          }
          return;
        }
        const int64_t peak = PeakOf(d, now);
        need = std::min(need, peak);
        if (peak > budgets[static_cast<size_t>(d)].value()) return;
        std::vector<int64_t> times;
        for (const StageLabel& label : now) times.push_back(label[0]);
        choices[static_cast<size_t>(d)].push_back(times);
      };
      choose(0);
      std::sort(choices[static_cast<size_t>(d)].begin(), choices[static_cast<size_t>(d)].end());
      choices[static_cast<size_t>(d)].erase(std::unique(choices[static_cast<size_t>(d)].begin(),
                                                        choices[static_cast<size_t>(d)].end()),
                                            choices[static_cast<size_t>(d)].end());
      answer.needs.push_back(need);
    }
    backward.resize(forward.size());
    const std::function<void(int)> choose = [&](int d) {
      if (d == shape_.devices) {
        const int64_t makespan = RunTasks(shape_, [&](const PipelineTask& task) {
          return (task.forward ? forward : backward)[static_cast<size_t>(task.stage)];
        });
        answer.makespan = std::min(answer.makespan, makespan);
        return;
      }
      for (const std::vector<int64_t>& times : choices[static_cast<size_t>(d)]) {
        for (int c = 0; c < shape_.chunks; ++c) {
          backward[static_cast<size_t>(d + c * shape_.devices)] = times[static_cast<size_t>(c)];
        }
        choose(d + 1);
      }
    };
    choose(0);
    return answer;
  }

  // For every choice of where stages end.
  void ForEach(const std::function<void(const std::vector<int>&)>& visit) const {
    std::vector<int> ends;
    const std::function<void()> choose = [&] {
      const int stages = shape_.stages();
      const int first = ends.empty() ? 1 : ends.back() + 1;
      if (static_cast<int>(ends.size()) == stages - 1) {
        ends.push_back(chain_.length());
        visit(ends);
        ends.pop_back();
        return;
      }
      const int behind = stages - 1 - static_cast<int>(ends.size());
      for (int last = first; last <= chain_.length() - behind; ++last) {
        ends.push_back(last);
        choose();
        ends.pop_back();
      }
    };
    choose();
  }

 private:
  int64_t PeakOf(int device, const std::vector<StageLabel>& chunks) const {
    int64_t held = 0, peak = 0;
    RunTasks(shape_, [&](const PipelineTask& task) {
      if (task.stage % shape_.devices != device) return 1;
      const StageLabel& label = chunks[static_cast<size_t>(task.stage / shape_.devices)];
      if (!task.forward) held -= label[1];
      peak = std::max(peak, held + label[task.forward ? 2 : 3]);
      if (task.forward) held += label[1];
      return 1;
    });
    return peak;
  }

  const Chain& chain_;
  const PipelineShape shape_;
};

void ExpectSound(const Chain& chain, const PipelineRequest& request, const PipelinePlan& plan) {
  ASSERT_EQ(plan.status, PlanStatus::kFound);
  ASSERT_EQ(plan.stages.size(), static_cast<size_t>(request.shape.stages()));
  const NaivePipeline naive = RunPlan(chain, request.shape, plan);
  EXPECT_EQ(plan.makespan.value(), naive.makespan);
  ASSERT_EQ(plan.peaks.size(), request.budgets.size());
  for (size_t d = 0; d < plan.peaks.size(); ++d) {
    EXPECT_EQ(plan.peaks[d].value(), naive.peaks[d]) << "device " << d;
    EXPECT_LE(plan.peaks[d], request.budgets[d]) << "device " << d;
  }
  EXPECT_LE(plan.lower_bound, plan.makespan);
}

// Budgets between what the stages need and what they take where nothing runs again; one in four may be too small.
std::vector<Bytes> RandomBudgets(const std::vector<int64_t>& needs, std::mt19937_64* rng) {
  std::vector<Bytes> budgets;
  for (const int64_t need : needs) {
    const int64_t low = (*rng)() % 4 == 0 ? 0 : need;
    budgets.emplace_back(std::uniform_int_distribution<int64_t>(low, need + need)(*rng));
  }
  return budgets;
}

struct GivenCase {
  PipelineShape shape;
  int layers;
  int chains;
};

void CompareGiven(const GivenCase& c, uint64_t seed) {
  std::mt19937_64 rng(seed);
  int found = 0, infeasible = 0;
  for (int i = 0; i < c.chains; ++i) {
    const Chain chain = RandomChain(c.layers, VariedOptions(i), &rng);
    Exhaustive all(chain, c.shape);
    std::vector<std::vector<int>> choices;
    all.ForEach([&](const std::vector<int>& ends) { choices.push_back(ends); });
    PipelineRequest request;
    request.shape = c.shape;
    request.shape.transfer_time = Nanos(i % 2);
    Exhaustive exhaustive(chain, request.shape);
    request.last_layers = choices[rng() % choices.size()];
    const std::vector<Bytes> none(static_cast<size_t>(c.shape.devices), Bytes(0));
    request.budgets = RandomBudgets(exhaustive.Of(request.last_layers, none).needs, &rng);
    const Exhaustive::Answer best = exhaustive.Of(request.last_layers, request.budgets);
    const absl::StatusOr<PipelinePlan> plan = PlanPipeline(chain, request, {});
    ASSERT_TRUE(plan.ok()) << plan.status() << Describe(chain);
    if (best.makespan < kNever) {
      ++found;
      ExpectSound(chain, request, *plan);
      EXPECT_EQ(plan->makespan.value(), best.makespan) << Describe(chain);
      EXPECT_TRUE(plan->proven_optimal);
      continue;
    }
    ++infeasible;
    EXPECT_EQ(plan->status, PlanStatus::kProvenInfeasible) << Describe(chain);
    const auto first_short = [&] {
      for (size_t d = 0; d < best.needs.size(); ++d) {
        if (best.needs[d] > request.budgets[d].value()) return static_cast<int>(d);
      }
      return -1;
    }();
    ASSERT_EQ(plan->short_device, first_short) << Describe(chain);
    EXPECT_EQ(plan->least_budget.value(), best.needs[static_cast<size_t>(first_short)]);
    EXPECT_EQ(plan->least_equal_budget.value(),
              *std::max_element(best.needs.begin(), best.needs.end()));
  }
  EXPECT_GT(found, c.chains / 4);
  EXPECT_GT(infeasible, 0);
}

TEST(PlanPipeline, GivenStagesOf1F1BAreOptimal) {
  CompareGiven({{2, 1, 3, Nanos(0)}, 5, 200}, 1);
  CompareGiven({{3, 1, 4, Nanos(0)}, 6, 100}, 2);
  CompareGiven({{2, 1, 1, Nanos(0)}, 5, 60}, 3);
  CompareGiven({{1, 1, 2, Nanos(0)}, 5, 60}, 4);
}

TEST(PlanPipeline, GivenStagesThatAreInterleavedAreOptimal) {
  CompareGiven({{2, 2, 4, Nanos(0)}, 7, 100}, 5);
  CompareGiven({{1, 2, 3, Nanos(0)}, 5, 60}, 6);
  CompareGiven({{2, 2, 2, Nanos(0)}, 6, 60}, 7);
}

void CompareChosen(const GivenCase& c, uint64_t seed) {
  std::mt19937_64 rng(seed);
  int found = 0, infeasible = 0;
  for (int i = 0; i < c.chains; ++i) {
    const Chain chain = RandomChain(c.layers, VariedOptions(i), &rng);
    Exhaustive exhaustive(chain, c.shape);
    PipelineRequest request;
    request.shape = c.shape;
    const std::vector<Bytes> none(static_cast<size_t>(c.shape.devices), Bytes(0));
    std::vector<std::vector<int64_t>> needs;
    exhaustive.ForEach(
        [&](const std::vector<int>& ends) { needs.push_back(exhaustive.Of(ends, none).needs); });
    request.budgets = RandomBudgets(needs[rng() % needs.size()], &rng);
    int64_t best = kNever;
    exhaustive.ForEach([&](const std::vector<int>& ends) {
      best = std::min(best, exhaustive.Of(ends, request.budgets).makespan);
    });
    const absl::StatusOr<PipelinePlan> plan = PlanPipeline(chain, request, {});
    ASSERT_TRUE(plan.ok()) << plan.status() << Describe(chain);
    if (best < kNever) {
      ++found;
      ExpectSound(chain, request, *plan);
      EXPECT_EQ(plan->makespan.value(), best) << Describe(chain);
      EXPECT_TRUE(plan->proven_optimal);
      continue;
    }
    ++infeasible;
    EXPECT_EQ(plan->status, PlanStatus::kProvenInfeasible) << Describe(chain);
    int64_t equal = kNever;
    for (const std::vector<int64_t>& need : needs) {
      equal = std::min(equal, *std::max_element(need.begin(), need.end()));
    }
    EXPECT_EQ(plan->least_equal_budget.value(), equal) << Describe(chain);
    if (c.shape.chunks > 1) continue;
    // The least rise of one budget.
    int64_t rise = kNever;
    for (const std::vector<int64_t>& need : needs) {
      int short_devices = 0;
      int64_t by = 0;
      for (size_t d = 0; d < need.size(); ++d) {
        if (need[d] <= request.budgets[d].value()) continue;
        ++short_devices;
        by = need[d] - request.budgets[d].value();
      }
      if (short_devices == 1) rise = std::min(rise, by);
    }
    if (rise == kNever) {
      EXPECT_EQ(plan->short_device, -1);
      continue;
    }
    ASSERT_GE(plan->short_device, 0);
    EXPECT_EQ(
        (plan->least_budget - request.budgets[static_cast<size_t>(plan->short_device)]).value(),
        rise);
  }
  EXPECT_GT(found, c.chains / 4);
  EXPECT_GT(infeasible, 0);
}

TEST(PlanPipeline, ChosenStagesOf1F1BAreOptimal) {
  CompareChosen({{2, 1, 3, Nanos(0)}, 5, 40}, 21);
  CompareChosen({{3, 1, 4, Nanos(0)}, 6, 30}, 22);
}

TEST(PlanPipeline, ChosenStagesThatAreInterleavedAreOptimal) {
  CompareChosen({{2, 2, 4, Nanos(0)}, 6, 20}, 23);
}

// Without a pipeline it is the optimal memory-persistent schedule, once for each microbatch.
TEST(PlanPipeline, OfOneDeviceIsThePersistentOptimum) {
  std::mt19937_64 rng(31);
  for (int i = 0; i < 60; ++i) {
    const Chain chain = RandomChain(7, VariedOptions(i), &rng);
    const Instance instance(chain);
    const Bytes least = *OptimalPersistentSolver().LeastBudget(instance, {});
    const Bytes all = instance.store_all()->peak;
    for (const Bytes budget : {least, Bytes((least + all).value() / 2), all}) {
      const Plan alone = *OptimalPersistentSolver().Solve(instance, budget, {});
      const auto plan = PlanPipeline(chain, {{1, 1, 5, Nanos(0)}, {budget}, {}}, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->status, PlanStatus::kFound);
      EXPECT_EQ(plan->makespan.value(), 5 * alone.prediction.makespan.value()) << Describe(chain);
    }
    const auto too_little = PlanPipeline(chain, {{1, 1, 5, Nanos(0)}, {least - Bytes(1)}, {}}, {});
    ASSERT_TRUE(too_little.ok());
    EXPECT_EQ(too_little->status, PlanStatus::kProvenInfeasible);
    EXPECT_EQ(too_little->least_budget, least);
    EXPECT_EQ(too_little->least_equal_budget, least);
  }
}

TEST(PlanPipeline, MoreBudgetIsNeverSlower) {
  std::mt19937_64 rng(32);
  for (int i = 0; i < 20; ++i) {
    const Chain chain = RandomChain(8, VariedOptions(i), &rng);
    for (const int chunks : {1, 2}) {
      PipelineRequest request;
      request.shape = {2, chunks, 4, Nanos(1)};
      request.budgets = {Bytes(0), Bytes(0)};
      const Bytes least = PlanPipeline(chain, request, {})->least_equal_budget;
      Nanos before(kNever);
      for (int64_t more = 0; more <= least.value(); more += 1 + least.value() / 6) {
        request.budgets = {least + Bytes(more), least + Bytes(more)};
        const auto plan = PlanPipeline(chain, request, {});
        ASSERT_TRUE(plan.ok()) << plan.status();
        ExpectSound(chain, request, *plan);
        EXPECT_LE(plan->makespan, before) << Describe(chain);
        before = plan->makespan;
      }
    }
  }
}

// As many layers as a large model has, most of them alike.
Chain Decoder(int layers) {
  ChainSpec spec;
  Stage layer;
  layer.forward_time = Nanos(1000);
  layer.backward_time = Nanos(2000);
  layer.output = layer.output_gradient = Bytes(50);
  layer.saved = Bytes(1700);
  layer.backward_overhead = Bytes(400);
  spec.input = Bytes(1);
  spec.stages.assign(static_cast<size_t>(layers), layer);
  spec.stages.front().forward_time = Nanos(50);
  spec.stages.front().saved = Bytes(60);
  spec.loss.forward_time = Nanos(700);
  spec.loss.backward_time = Nanos(1400);
  spec.loss.saved = Bytes(3000);
  return *Chain::Create(spec);
}

TEST(PlanPipeline, LargeModelsArePlannedWithinTheirBudgets) {
  const Chain chain = Decoder(48);
  for (const int chunks : {1, 2}) {
    PipelineRequest request;
    request.shape = {4, chunks, 16, Nanos(30)};
    for (const int64_t budget : {90000, 50000, 30000}) {
      request.budgets.assign(4, Bytes(budget));
      const auto plan = PlanPipeline(chain, request, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      ExpectSound(chain, request, *plan);
    }
  }
}

// Two devices of four chunks each at the least they can have, where most choices of points do not fit.
TEST(PlanPipeline, ManyChunksEndWhereLittleFits) {
  const Chain chain = Decoder(48);
  PipelineRequest request;
  request.shape = {2, 4, 4, Nanos(30)};
  request.last_layers = {6, 12, 18, 24, 30, 36, 42, 48};
  request.budgets.assign(2, Bytes(0));
  const auto none = PlanPipeline(chain, request, {});
  ASSERT_TRUE(none.ok()) << none.status();
  ASSERT_NE(none->status, PlanStatus::kFound);
  for (const int64_t less : {0, 1}) {
    StopToken stop;
    stop.PassDeadlineAtLook(300);  // what a search without an end is past soon
    SolveOptions options;
    options.stop = &stop;
    request.budgets.assign(2, none->least_equal_budget - Bytes(less));
    const auto plan = PlanPipeline(chain, request, options);
    ASSERT_TRUE(plan.ok()) << plan.status();
    if (less == 0) {
      ExpectSound(chain, request, *plan);
      continue;
    }
    EXPECT_EQ(plan->status, none->status);
    EXPECT_EQ(plan->least_equal_budget, none->least_equal_budget);
  }
}

TEST(PlanPipeline, TakesNoMoreThanItsMemory) {
  const Chain chain = Decoder(24);
  const PipelineRequest request = {{2, 1, 8, Nanos(0)}, std::vector<Bytes>(2, Bytes(30000)), {}};
  bool points = false, found = false;
  for (int64_t limit = 1 << 10; limit <= 1 << 30; limit += limit / 8) {
    SolveOptions options;
    options.table_limit = Bytes(limit);
    const auto plan = PlanPipeline(chain, request, options);
    if (plan.ok()) {
      found = true;
      break;
    }
    ASSERT_TRUE(absl::IsResourceExhausted(plan.status())) << plan.status();
    points |= absl::StrContains(plan.status().message(), "points of stages");
  }
  EXPECT_TRUE(points);
  EXPECT_TRUE(found);
}

TEST(PlanPipeline, ThrowsNothing) {
  SolveOptions options;
  options.progress = [](double) { throw std::bad_alloc(); };
  const auto plan = PlanPipeline(
      Decoder(6), {{2, 1, 2, Nanos(0)}, std::vector<Bytes>(2, Bytes(1000000)), {}}, options);
  EXPECT_TRUE(absl::IsResourceExhausted(plan.status())) << plan.status();
}

TEST(PlanPipeline, RefusesWrongRequests) {
  const Chain chain = Decoder(6);
  const auto field = [&chain](const PipelineRequest& request) {
    const auto plan = PlanPipeline(chain, request, {});
    const auto violation = GetFieldViolation(plan.status());
    return violation ? violation->field : std::string();
  };
  const Bytes enough(1000000);
  EXPECT_EQ(field({{2, 1, 2, Nanos(0)}, {enough, enough}, {}}), "");
  EXPECT_EQ(field({{2, 1, 0, Nanos(0)}, {enough, enough}, {}}), "microbatches");
  EXPECT_EQ(field({{7, 1, 2, Nanos(0)}, std::vector<Bytes>(7, enough), {}}), "chain.stages");
  EXPECT_EQ(field({{2, 1, 2, Nanos(0)}, {enough}, {}}), "budgets_bytes");
  EXPECT_EQ(field({{2, 1, 2, Nanos(0)}, {enough, Bytes(-1)}, {}}), "budgets_bytes[1]");
  EXPECT_EQ(field({{2, 1, 2, Nanos(0)}, {enough, enough}, {6}}), "last_layers");
  EXPECT_EQ(field({{2, 1, 2, Nanos(0)}, {enough, enough}, {0, 6}}), "last_layers[0]");
  EXPECT_EQ(field({{2, 1, 2, Nanos(0)}, {enough, enough}, {3, 3}}), "last_layers[1]");
  EXPECT_EQ(field({{2, 1, 2, Nanos(0)}, {enough, enough}, {3, 5}}), "last_layers[1]");
  EXPECT_EQ(field({{2, 1, 2, Nanos(0)}, {enough, enough}, {3, 7}}), "last_layers[1]");
}

TEST(PlanPipeline, HearsOfAStop) {
  StopToken stop;
  stop.RequestStop();
  SolveOptions options;
  options.stop = &stop;
  const auto plan = PlanPipeline(
      Decoder(24), {{4, 1, 8, Nanos(0)}, std::vector<Bytes>(4, Bytes(40000)), {}}, options);
  EXPECT_TRUE(absl::IsCancelled(plan.status())) << plan.status();
}

// Tables over stages and layers are work too: 64 steps for a layer of each row, and a look at every 2^20.
TEST(PlanPipeline, LooksAtTheDeadlineInTablesOfStages) {
  const Chain chain = Decoder(256);
  StopToken stop;
  SolveOptions options;
  options.stop = &stop;
  // The even stages, 128 of 256 layers: 24,640 rows.
  const auto interleaved =
      PlanPipeline(chain, {{8, 16, 8, Nanos(0)}, std::vector<Bytes>(8, Bytes(0)), {}}, options);
  ASSERT_TRUE(interleaved.ok()) << interleaved.status();
  EXPECT_GE(stop.looks(), 24640 / 64);
  // What nothing fits in, on 32 devices: 8,192 rows; the bounds before are 7,441 and 7,696 of a quarter.
  StopToken other;
  options.stop = &other;
  const auto chosen =
      PlanPipeline(chain, {{32, 1, 1, Nanos(0)}, std::vector<Bytes>(32, Bytes(0)), {}}, options);
  ASSERT_TRUE(chosen.ok()) << chosen.status();
  EXPECT_GE(other.looks(), (8192 + 7441 + 7696 / 4) / 64);
}

}  // namespace
}  // namespace stowage::testing
