#include "tests/server/support/fake_solver.h"

#include <new>
#include <optional>
#include <utility>

namespace stowage::testing {
namespace {

constexpr std::chrono::seconds kPatience{10};

absl::StatusOr<Plan> PlanSoFar(const Instance& instance, Bytes budget, PlanOptions options) {
  options.solve.stop = nullptr;
  absl::StatusOr<Plan> plan = MakePlan(instance, budget, options);
  if (plan.ok()) plan->search_complete = false;
  return plan;
}

absl::StatusOr<Frontier> FrontierSoFar(const Instance& instance, PlanOptions options) {
  options.solve.stop = nullptr;
  const absl::StatusOr<Frontier> whole = MakeFrontier(instance, options);
  if (!whole.ok()) return whole.status();
  FrontierBuilder builder(instance);
  builder.Add(*whole);
  FrontierInfo info = whole->info();
  info.search_complete = false;
  return builder.Build(info);
}

}  // namespace

absl::StatusOr<Bytes> FakeSolver::Resolve(const Instance& instance, const Budget& budget,
                                          const PlanOptions& options) const {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ++resolved_;
  }
  return ResolveBudget(instance, budget, options);
}

absl::StatusOr<Plan> FakeSolver::Solve(const Instance& instance, Bytes budget,
                                       const PlanOptions& options) const {
  std::unique_lock<std::mutex> lock(mutex_);
  // Made now: at the deadline there is no time left for it, least of all under sanitizers.
  std::optional<absl::StatusOr<Plan>> so_far;
  if (answers_at_deadline_) so_far = PlanSoFar(instance, budget, options);
  ++started_;
  table_limit_ = options.solve.table_limit;
  changed_.notify_all();
  if (told_ && options.solve.incumbent) options.solve.incumbent(*told_);
  while (held_) {
    changed_.wait_for(lock, std::chrono::milliseconds(5));
    const absl::Status status = options.solve.stop->Check();
    if (status.ok()) continue;
    ++stopped_;
    changed_.notify_all();
    return so_far && absl::IsDeadlineExceeded(status) ? *so_far : status;
  }
  if (throws_) throw std::bad_alloc();
  if (!failure_.ok()) return failure_;
  lock.unlock();
  absl::StatusOr<Plan> plan = MakePlan(instance, budget, options);
  made_();
  return plan;
}

absl::StatusOr<Frontier> FakeSolver::SolveFrontier(const Instance& instance,
                                                   const PlanOptions& options) const {
  std::unique_lock<std::mutex> lock(mutex_);
  std::optional<absl::StatusOr<Frontier>> so_far;
  if (answers_at_deadline_) so_far = FrontierSoFar(instance, options);
  ++frontiers_;
  changed_.notify_all();
  while (held_) {
    changed_.wait_for(lock, std::chrono::milliseconds(5));
    const absl::Status status = options.solve.stop->Check();
    if (status.ok()) continue;
    return so_far && absl::IsDeadlineExceeded(status) ? *so_far : status;
  }
  const bool cut = std::exchange(cuts_next_frontier_, false);
  lock.unlock();
  absl::StatusOr<Frontier> frontier =
      cut ? FrontierSoFar(instance, options) : MakeFrontier(instance, options);
  made_();
  return frontier;
}

int FakeSolver::frontiers() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return frontiers_;
}

void FakeSolver::Release() {
  std::lock_guard<std::mutex> lock(mutex_);
  held_ = false;
  changed_.notify_all();
}

void FakeSolver::Hold() {
  std::lock_guard<std::mutex> lock(mutex_);
  held_ = true;
}

void FakeSolver::FailWith(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  failure_ = status;
}

void FakeSolver::TellOf(const Schedule& schedule) {
  std::lock_guard<std::mutex> lock(mutex_);
  told_ = schedule;
}

void FakeSolver::CutNextFrontierShort() {
  std::lock_guard<std::mutex> lock(mutex_);
  cuts_next_frontier_ = true;
}

void FakeSolver::AnswerAtDeadline() {
  std::lock_guard<std::mutex> lock(mutex_);
  answers_at_deadline_ = true;
}

void FakeSolver::ThrowBadAlloc() {
  std::lock_guard<std::mutex> lock(mutex_);
  throws_ = true;
}

bool FakeSolver::WaitUntilStarted(int solves) const {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return started_ >= solves; });
}

bool FakeSolver::WaitUntilStopped(int solves) const {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, kPatience, [&] { return stopped_ >= solves; });
}

int FakeSolver::started() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return started_;
}

int FakeSolver::stopped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return stopped_;
}

int FakeSolver::resolved() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return resolved_;
}

Bytes FakeSolver::table_limit() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return table_limit_;
}

}  // namespace stowage::testing
