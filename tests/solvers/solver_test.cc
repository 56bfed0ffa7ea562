// What Solver does around an algorithm, whatever that is.
#include "solvers/solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "solvers/model/canonical.h"
#include "tests/solvers/random_chain.h"

namespace stowage {
namespace {

// Runs what it is given instead of an algorithm.
class Calls final : public Solver {
 public:
  explicit Calls(std::function<void()> call) : call_(std::move(call)) {}
  const SolverInfo& info() const override { return info_; }

 private:
  absl::StatusOr<Plan> DoSolve(const Instance&, Bytes, const SolveContext&) const override {
    call_();
    return Plan();
  }
  absl::StatusOr<Frontier> DoSolveFrontier(const Instance&, const SolveContext&) const override {
    call_();
    return Frontier();
  }
  absl::StatusOr<Bytes> DoLeastBudget(const Instance&, const SolveContext&) const override {
    call_();
    return Bytes(0);
  }

  const std::function<void()> call_;
  const SolverInfo info_ = {"calls", "calls a function", "nothing"};
};

// Status of each of the three.
std::vector<absl::Status> StatusesOf(const Solver& solver, const SolveContext& context) {
  std::mt19937_64 rng(1);
  const Chain chain = testing::RandomChain(4, {}, &rng);
  return {solver.Solve(chain, Bytes(1), context).status(),
          solver.SolveFrontier(chain, context).status(),
          solver.LeastBudget(chain, context).status()};
}

TEST(Solver, ExceptionsOfAlgorithmsAreErrors) {
  for (const absl::Status& status : StatusesOf(Calls([] { throw std::bad_alloc(); }), {})) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  }
  const Calls too_long([] { throw std::length_error("too long"); });
  for (const absl::Status& status : StatusesOf(too_long, {})) {
    EXPECT_TRUE(absl::IsInternal(status)) << status;
    EXPECT_NE(status.message().find("too long"), std::string::npos) << status;
  }
  for (const absl::Status& status : StatusesOf(Calls([] { throw 7; }), {})) {
    EXPECT_TRUE(absl::IsInternal(status)) << status;
  }
}

TEST(Solver, RefusesOptionsBeforeItCallsTheAlgorithm) {
  int calls = 0;
  const Calls counting([&] { ++calls; });
  for (const int64_t slots : {int64_t{-1}, kSlotLimit + 1}) {
    SolveOptions options;
    options.slots = slots;
    for (const absl::Status& status : StatusesOf(counting, options)) {
      EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    }
  }
  EXPECT_EQ(calls, 0);
  SolveOptions most;
  most.slots = kSlotLimit;
  for (const absl::Status& status : StatusesOf(counting, most)) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(calls, 3);
}

// Tables and points have a limit each: a solve takes no more than both together.
TEST(SolveContext, PointsOfFrontiersHaveAsMuchMemoryAsTables) {
  SolveOptions options;
  for (const int64_t bytes : {int64_t{1}, int64_t{16} << 20, int64_t{1} << 30}) {
    options.table_limit = Bytes(bytes);
    const SolveContext context(options);
    EXPECT_EQ(context.memory(), Bytes(bytes));
    EXPECT_EQ(context.frontier_limit(), std::max(Bytes(bytes), Bytes(16 << 20)));
    // What other tables leave is no concern of the points.
    EXPECT_EQ(context.WithMemory(Bytes(1)).frontier_limit(), context.frontier_limit());
  }
}

TEST(Solver, LooksAtTheTokenBeforeItCallsTheAlgorithm) {
  int calls = 0;
  StopToken stop;
  stop.PassDeadlineAtLook(1);
  SolveOptions options;
  options.stop = &stop;
  for (const absl::Status& status : StatusesOf(Calls([&] { ++calls; }), options)) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  }
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace stowage
