#include "server/runtime/intake.h"

#include <utility>

#include "server/entries/planning_error.h"

namespace stowage {

FairLane::FairLane(int threads, size_t queue_limit, const AccountShare& share, Waited waited)
    : threads_(threads), queue_limit_(queue_limit), waited_(std::move(waited)), share_(share) {
  for (int i = 0; i < threads; ++i) workers_.emplace_back([this] { Serve(); });
}

FairLane::~FairLane() { Stop(); }

FairLane::Taken FairLane::TrySubmit(const Account& account, IntakeTask task) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return Taken::kStopped;
  if (waiting_ >= queue_limit_) return Taken::kFull;
  const auto found = accounts_.find(account);
  const size_t its = found == accounts_.end() ? 0 : found->second.waiting.size();
  if (its >= share_.Of(queue_limit_, account)) return Taken::kFullOfAccount;
  Work& work = accounts_[account];
  work.waiting.push_back({std::move(task), std::chrono::steady_clock::now()});
  ++waiting_;
  GiveTurnLocked(account, &work);
  wake_.notify_one();
  return Taken::kYes;
}

void FairLane::GiveTurnLocked(const Account& account, Work* work) {
  if (work->has_turn || work->waiting.empty()) return;
  if (work->running >= share_.Of(threads_, account)) return;
  work->has_turn = true;
  turns_.push_back(account);
}

void FairLane::SetShare(const AccountShare& share) {
  std::lock_guard<std::mutex> lock(mutex_);
  share_ = share;
  if (stopped_) return;
  for (auto& [account, work] : accounts_) GiveTurnLocked(account, &work);
  wake_.notify_all();
}

size_t FairLane::tasks() {
  std::lock_guard<std::mutex> lock(mutex_);
  size_t tasks = 0;
  for (const auto& [account, work] : accounts_) {
    tasks += work.waiting.size() + static_cast<size_t>(work.running);
  }
  return tasks;
}

size_t FairLane::LimitOf(const Account& account) {
  std::lock_guard<std::mutex> lock(mutex_);
  return share_.Of(queue_limit_, account);
}

void FairLane::Stop() {
  std::vector<IntakeTask> refused;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    turns_.clear();
    for (auto& [account, work] : accounts_) {
      for (Waiting& waiting : work.waiting) refused.push_back(std::move(waiting.task));
      work.waiting.clear();
    }
    waiting_ = 0;
  }
  wake_.notify_all();
  for (const IntakeTask& task : refused) task(DrainingError());
  std::lock_guard<std::mutex> lock(join_mutex_);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

void FairLane::RunNextLocked(std::unique_lock<std::mutex>* lock) {
  const Account account = std::move(turns_.front());
  turns_.pop_front();
  Work& work = accounts_.find(account)->second;  // stays while one of its tasks runs
  work.has_turn = false;
  auto [task, since] = std::move(work.waiting.front());
  work.waiting.pop_front();
  --waiting_;
  ++work.running;
  GiveTurnLocked(account, &work);
  if (!turns_.empty()) wake_.notify_one();
  lock->unlock();
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - since;
  if (waited_) waited_(waited.count());
  task(absl::OkStatus());
  task = nullptr;  // what it holds may not die under the lock
  lock->lock();
  --work.running;
  if (!stopped_) GiveTurnLocked(account, &work);
  if (work.running == 0 && work.waiting.empty()) accounts_.erase(account);
}

void FairLane::Serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopped_ || !turns_.empty(); });
    if (stopped_) return;
    RunNextLocked(&lock);
  }
}

Intake::Intake(const IntakeOptions& options, ServerMetrics* metrics) {
  for (size_t i = 0; i < kLaneCount; ++i) {
    const auto lane = static_cast<Lane>(i);
    lanes_[i] = std::make_unique<FairLane>(
        options.threads[i], options.queue_limit, options.share,
        [metrics, lane](double seconds) { metrics->LaneWaited(lane, seconds); });
  }
}

void Intake::SetShare(const AccountShare& share) {
  for (const auto& lane : lanes_) lane->SetShare(share);
}

size_t Intake::tasks() {
  size_t tasks = 0;
  for (const auto& lane : lanes_) tasks += lane->tasks();
  return tasks;
}

void Intake::Stop() {
  for (const auto& lane : lanes_) lane->Stop();
}

}  // namespace stowage
