// Compute DAGs: the evaluator beside a replay that shares nothing with it, and solvers beside an exhaustive search.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/schedule_blocks.h"
#include "tests/solvers/random_compute_dag.h"

namespace stowage::testing {
namespace {

struct Costs {
  int64_t makespan = 0;
  int64_t peak = 0;
};

// A DAG with views, replayed by the words of the contract.
class Naive {
 public:
  explicit Naive(const Graph& dag) : dag_(dag), held_(Size(), false), ran_(Size(), false) {}

  bool Run(const Instruction& i) {
    const int p = i.stage - 1;
    if (p < 0 || p >= dag_.size() || i.stream != Stream::kCompute) return false;
    if (i.op == Op::kDiscard) return i.tensor == TensorKind::kActivation && Drop(p);
    return i.op == Op::kForwardNoSave && Forward(p);
  }

  bool MayEnd() const {
    for (int p = 0; p < dag_.size(); ++p) {
      if (!ran_[At(p)] || (dag_.vertex(p).result && !IsThere(p))) return false;
    }
    return true;
  }

  bool IsThere(int p) const { return ran_[At(p)] && held_[At(Root(p))]; }
  bool IsHeld(int p) const { return Root(p) == p && held_[At(p)]; }
  const Costs& costs() const { return costs_; }

 private:
  static size_t At(int p) { return static_cast<size_t>(p); }
  size_t Size() const { return static_cast<size_t>(dag_.size()); }

  int Root(int p) const {
    while (dag_.vertex(p).alias != AliasKind::kNone) {
      p = static_cast<int>(dag_.vertex(p).inputs[0].vertex);
    }
    return p;
  }

  bool Drop(int p) {
    if (!IsHeld(p)) return false;
    held_[At(p)] = false;
    return true;
  }

  int64_t Held() const {
    int64_t bytes = 0;
    for (int p = 0; p < dag_.size(); ++p) bytes += IsHeld(p) ? dag_.vertex(p).output.value() : 0;
    return bytes;
  }

  bool IsOrdered(int p) const {
    const Vertex& v = dag_.vertex(p);
    return v.random || v.stateful || v.collective;
  }

  bool Forward(int p) {
    const Vertex& v = dag_.vertex(p);
    if (ran_[At(p)] && (v.inputs.empty() || v.must_keep || v.collective)) return false;
    for (int q = 0; !ran_[At(p)] && IsOrdered(p) && q < p; ++q) {
      if (IsOrdered(q) && !ran_[At(q)]) return false;
    }
    for (const GraphInput& input : v.inputs) {
      if (!IsThere(static_cast<int>(input.vertex))) return false;
    }
    if (IsThere(p)) return false;
    ran_[At(p)] = true;
    held_[At(Root(p))] = true;
    costs_.peak = std::max(costs_.peak, Held() + v.forward_overhead.value());
    costs_.makespan += v.forward_time.value();
    return true;
  }

  const Graph& dag_;
  std::vector<bool> held_;  // by the vertex that has the bytes
  std::vector<bool> ran_;
  Costs costs_;
};

std::optional<Costs> ReplayNaively(const Graph& dag, const Schedule& schedule) {
  Naive replay(dag);
  for (const Instruction& i : schedule) {
    if (!replay.Run(i)) return std::nullopt;
  }
  if (!replay.MayEnd()) return std::nullopt;
  return replay.costs();
}

int Draw(int low, int high, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int>(low, high)(*rng);
}

// Wanders through what is valid, and stops where the step may end, now and then later.
Schedule Wander(const Graph& dag, std::mt19937_64* rng) {
  Naive replay(dag);
  Schedule schedule;
  for (int tries = 0; tries < 3000; ++tries) {
    if (replay.MayEnd() && Draw(0, 3, rng) == 0) break;
    const int stage = Draw(1, dag.size(), rng);
    const bool drops = Draw(0, 5, rng) == 0;
    const Instruction i = drops ? Discard(TensorKind::kActivation, stage) : ForwardNoSave(stage);
    if (replay.Run(i)) schedule.push_back(i);
  }
  return schedule;
}

Schedule Broken(Schedule schedule, const Graph& dag, std::mt19937_64* rng) {
  const int at = Draw(0, static_cast<int>(schedule.size()) - 1, rng);
  Instruction& i = schedule[static_cast<size_t>(at)];
  switch (Draw(0, 3, rng)) {
    case 0:
      schedule.erase(schedule.begin() + at);
      break;
    case 1:
      schedule.insert(schedule.begin() + at, ForwardNoSave(Draw(1, dag.size(), rng)));
      break;
    case 2:
      i.stage = Draw(0, dag.size() + 1, rng);
      break;
    default:
      i = Draw(0, 1, rng) == 0 ? Backward(i.stage) : ForwardSave(i.stage);
  }
  return schedule;
}

TEST(ComputeDag, TheEvaluatorAgreesWithANaiveReplay) {
  std::mt19937_64 rng(1);
  int valid = 0, broken = 0;
  for (int k = 0; k < 3000; ++k) {
    const Graph dag =
        RandomComputeDag({Draw(1, 9, &rng), 5, 6, 0.3, 0.3, k % 2 == 0, false, k % 3 == 0}, &rng);
    Schedule schedule = Wander(dag, &rng);
    if (k % 4 == 3 && !schedule.empty()) schedule = Broken(std::move(schedule), dag, &rng);
    const std::optional<Costs> want = ReplayNaively(dag, schedule);
    const absl::StatusOr<Simulation> run = Evaluator(dag).Run(schedule);
    ASSERT_EQ(run.ok(), want.has_value()) << run.status();
    if (!want) {
      ++broken;
      continue;
    }
    ++valid;
    EXPECT_EQ(run->makespan.value(), want->makespan);
    EXPECT_EQ(run->peak.value(), want->peak);
    EXPECT_EQ(run->makespan - run->recompute_time, dag.ideal_time());
  }
  EXPECT_GT(valid, 900);
  EXPECT_GT(broken, 200);
}

TEST(ComputeDag, BlocksAddUpToThePeak) {
  std::mt19937_64 rng(2);
  for (int k = 0; k < 200; ++k) {
    const Graph dag = RandomComputeDag({8, 5, 6, 0.3, 0.3, true, true, true}, &rng);
    const Instance instance(dag);
    const absl::StatusOr<ScheduleBlocks> blocks = BlocksOf(instance, instance.store_all_schedule());
    ASSERT_TRUE(blocks.ok()) << blocks.status();
    std::map<int64_t, int64_t> changes;
    for (const BlockLife& life : blocks->lives) {
      changes[life.begin] += life.size.value();
      changes[life.end] -= life.size.value();
    }
    int64_t live = 0, peak = 0;
    for (const auto& [moment, change] : changes) peak = std::max(peak, live += change);
    EXPECT_EQ(peak, instance.store_all()->peak.value());
  }
}

// The least time of any schedule within the budget, of a DAG without aliases; nothing if none fits.
class Exhaustive {
 public:
  Exhaustive(const Graph& dag, int64_t budget) : dag_(dag), budget_(budget) {}

  std::optional<int64_t> Run() {
    Reach(0, 0, 0);
    while (!queue_.empty()) {
      const auto [time, held, ran] = queue_.top();
      queue_.pop();
      if (best_.at({held, ran}) < time) continue;
      if (MayEnd(held, ran)) return time;
      for (int p = 0; p < dag_.size(); ++p) Step(time, held, ran, p);
    }
    return std::nullopt;
  }

 private:
  using Set = unsigned;

  static Set Bit(int p) { return Set{1} << p; }

  void Reach(int64_t time, Set held, Set ran) {
    const auto [known, fresh] = best_.try_emplace({held, ran}, time);
    if (!fresh && known->second <= time) return;
    known->second = time;
    queue_.push({time, held, ran});
  }

  bool MayEnd(Set held, Set ran) const {
    for (int p = 0; p < dag_.size(); ++p) {
      if ((ran & Bit(p)) == 0 || (dag_.vertex(p).result && (held & Bit(p)) == 0)) return false;
    }
    return true;
  }

  bool IsOrdered(int p) const {
    return dag_.vertex(p).random || dag_.vertex(p).stateful || dag_.vertex(p).collective;
  }

  bool MayRun(Set held, Set ran, int p) const {
    const Vertex& v = dag_.vertex(p);
    if ((held & Bit(p)) != 0) return false;
    if ((ran & Bit(p)) != 0 && (v.inputs.empty() || v.must_keep || v.collective)) return false;
    for (int q = 0; (ran & Bit(p)) == 0 && IsOrdered(p) && q < p; ++q) {
      if (IsOrdered(q) && (ran & Bit(q)) == 0) return false;
    }
    for (const GraphInput& input : v.inputs) {
      if ((held & Bit(static_cast<int>(input.vertex))) == 0) return false;
    }
    return true;
  }

  void Step(int64_t time, Set held, Set ran, int p) {
    if ((held & Bit(p)) != 0) Reach(time, held & ~Bit(p), ran);
    if (!MayRun(held, ran, p)) return;
    int64_t bytes = dag_.vertex(p).output.value() + dag_.vertex(p).forward_overhead.value();
    for (int q = 0; q < dag_.size(); ++q) {
      if ((held & Bit(q)) != 0) bytes += dag_.vertex(q).output.value();
    }
    if (bytes > budget_) return;
    Reach(time + dag_.vertex(p).forward_time.value(), held | Bit(p), ran | Bit(p));
  }

  const Graph& dag_;
  const int64_t budget_;
  std::map<std::pair<Set, Set>, int64_t> best_;
  using Entry = std::tuple<int64_t, Set, Set>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue_;
};

TEST(ComputeDag, PlansOfSmallOnesAreOptimalAtEveryBudget) {
  std::mt19937_64 rng(3);
  int recomputing = 0, budgets = 0, bounded = 0;
  for (int k = 0; k < 600; ++k) {
    const Graph dag =
        RandomComputeDag({Draw(2, 6, &rng), 5, 6, 0.4, 0.25, false, false, k % 3 == 0}, &rng);
    const Instance instance = Instance(dag).Remembering();
    const absl::StatusOr<Frontier> frontier = MakeFrontier(instance, {});
    ASSERT_TRUE(frontier.ok()) << frontier.status();
    EXPECT_TRUE(frontier->info().exact);
    Nanos bound_before(INT64_MAX);
    for (int64_t budget = 0; budget <= instance.store_all()->peak.value(); ++budget) {
      const std::optional<int64_t> want = Exhaustive(dag, budget).Run();
      const Frontier::Point* const point = frontier->At(Bytes(budget));
      ASSERT_EQ(point != nullptr, want.has_value()) << k << " within " << budget;
      ++budgets;
      const Nanos bound = StrongestMakespanLowerBound(instance, Bytes(budget));
      EXPECT_LE(bound, bound_before);
      bound_before = bound;
      if (!want) continue;
      ASSERT_LE(bound.value(), *want) << k << " within " << budget;
      bounded += bound > dag.ideal_time() ? 1 : 0;
      EXPECT_EQ(point->makespan.value(), *want) << k << " within " << budget;
      recomputing += point->makespan > dag.ideal_time() ? 1 : 0;
    }
  }
  EXPECT_GT(recomputing, 50);
  EXPECT_GT(bounded * 3, recomputing);
  EXPECT_GT(budgets, 3000);
}

class DagSolvers : public ::testing::TestWithParam<const Solver*> {};

TEST_P(DagSolvers, PlansAreValidWithinBudgetAndMonotone) {
  std::mt19937_64 rng(4);
  for (int k = 0; k < 40; ++k) {
    const Graph dag =
        RandomComputeDag({25, 50, 60, 0.1, 0.1, k % 2 == 0, k % 4 == 0, k % 3 == 0}, &rng);
    const Instance instance(dag);
    const Bytes all = instance.store_all()->peak;
    const absl::StatusOr<Bytes> least = GetParam()->LeastBudget(instance, {});
    ASSERT_TRUE(least.ok()) << least.status();
    Nanos before(INT64_MAX);
    for (const int percent : {20, 40, 60, 80, 90, 100, 150}) {
      const Bytes budget(all.value() * percent / 100);
      const absl::StatusOr<Plan> plan = GetParam()->Solve(instance, budget, {});
      ASSERT_TRUE(plan.ok()) << plan.status();
      ASSERT_EQ(plan->status == PlanStatus::kFound, budget >= *least);
      if (plan->status != PlanStatus::kFound) continue;
      const absl::StatusOr<Simulation> run = Evaluator(instance).Run(plan->schedule);
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_LE(run->peak, budget);
      EXPECT_LE(run->makespan, before);
      EXPECT_GE(run->makespan, StrongestMakespanLowerBound(instance, budget));
      before = run->makespan;
    }
    EXPECT_EQ(before, dag.ideal_time());
  }
}

INSTANTIATE_TEST_SUITE_P(All, DagSolvers, ::testing::ValuesIn(SolversOf(ProblemKind::kDag)),
                         [](const auto& solver) { return solver.param->info().name; });

// Forwards f1..f4, then backwards b4..b1 that each read an activation and the gradient before it: as compilers
// give it.
TEST(ComputeDag, RecomputesTheActivationsOfAJointGraph) {
  GraphSpec spec;
  spec.has_backwards = false;
  const auto add = [&spec](int64_t id, std::vector<int64_t> inputs, int64_t bytes, int64_t time) {
    Vertex v;
    v.id = v.program_order = id;
    for (const int64_t input : inputs) v.inputs.push_back({input, false});
    v.output = Bytes(bytes);
    v.forward_time = Nanos(time);
    spec.vertices.push_back(v);
  };
  add(0, {}, 10, 0);
  for (int64_t l = 1; l <= 4; ++l) add(l, {l - 1}, 10, 5);
  add(5, {4}, 10, 1);  // the loss and its gradient
  for (int64_t l = 4; l >= 1; --l) add(10 - l, {l - 1, l, 9 - l}, 10, 10);  // b_l
  spec.vertices.back().result = true;
  const Graph dag = *Graph::Create(spec);
  const Instance instance(dag);
  // Before b_4: the input, four activations, the loss' gradient; and what b_4 makes.
  EXPECT_EQ(instance.store_all()->peak, Bytes(70));
  const std::optional<int64_t> want = Exhaustive(dag, 60).Run();
  ASSERT_TRUE(want.has_value());
  const absl::StatusOr<Plan> plan = MakePlan(instance, Budget(Bytes(60)), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->status, PlanStatus::kFound);
  EXPECT_EQ(plan->prediction.makespan.value(), *want);
  EXPECT_EQ(plan->prediction.makespan - plan->prediction.recompute_time, dag.ideal_time());
  // It needs 10 bytes less than all at the loss: what takes 5 to run again.
  EXPECT_EQ(plan->bounds.lower_bound, dag.ideal_time() + Nanos(5));
  EXPECT_GT(plan->prediction.recomputed_forwards, 0);
  EXPECT_TRUE(plan->bounds.proven_optimal);
}

TEST(ComputeDag, OtherSolversRefuseIt) {
  std::mt19937_64 rng(5);
  const Instance instance(RandomComputeDag({}, &rng));
  int refusing = 0;
  for (const Solver* solver : AllSolvers()) {
    if (solver->info().dags) continue;
    ++refusing;
    const absl::StatusOr<Plan> plan = solver->Solve(instance, Bytes(1), {});
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(plan.status().message().find("must be a solver of compute DAGs"), std::string::npos);
  }
  EXPECT_GT(refusing, 5);
}

}  // namespace
}  // namespace stowage::testing
