// A solver that tests hold back: every solve waits until it is released or told to stop, then the
// library solves.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_FAKE_SOLVER_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_FAKE_SOLVER_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>

#include "server/service/plan_solver.h"

namespace stowage::testing {

class FakeSolver final : public PlanSolver {
 public:
  // `held`: solves wait until Release.
  explicit FakeSolver(bool held) : held_(held) {}

  absl::StatusOr<Bytes> Resolve(const Instance& instance, const Budget& budget,
                                const PlanOptions& options) const override;
  absl::StatusOr<Plan> Solve(const Instance& instance, Bytes budget,
                             const PlanOptions& options) const override;

  absl::StatusOr<Frontier> SolveFrontier(const Instance& instance,
                                         const PlanOptions& options) const override;

  void Release();
  void Hold();
  // Makes every solve from now on end with `status`.
  void FailWith(const absl::Status& status);
  // Makes every solve from now on tell of a schedule as it begins.
  void TellOf(const Schedule& schedule);
  // Makes held solves answer at their deadline, as if it had cut a search short.
  void AnswerAtDeadline();
  // Makes the next frontier one that a deadline has cut short.
  void CutNextFrontierShort();
  // Makes every solve from now on end as if the allocator had nothing left.
  void ThrowBadAlloc();
  // Has the solver's thread call it as each plan and frontier is made. Before the first solve.
  void WhenMade(std::function<void()> call) { made_ = std::move(call); }

  // False when fewer than that many have begun (or were stopped) after 10 s.
  bool WaitUntilStarted(int solves) const;
  bool WaitUntilStopped(int solves) const;
  int started() const;
  int stopped() const;
  int resolved() const;  // budgets
  int frontiers() const;
  // Of the last solve that began.
  Bytes table_limit() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool held_;
  absl::Status failure_;
  bool throws_ = false;
  std::function<void()> made_ = [] {};
  bool answers_at_deadline_ = false;
  mutable bool cuts_next_frontier_ = false;
  std::optional<Schedule> told_;
  mutable Bytes table_limit_;
  mutable int started_ = 0;
  mutable int stopped_ = 0;
  mutable int resolved_ = 0;
  mutable int frontiers_ = 0;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_FAKE_SOLVER_H_
