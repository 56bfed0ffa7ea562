#include "server/runtime/solver_pool.h"

#include <algorithm>

namespace stowage {
namespace {

using std::chrono::nanoseconds;

// A job of 1 s waits for short ones that come in the next 4 s.
constexpr int kPatience = 4;
constexpr nanoseconds kMostEstimate = std::chrono::hours(1);

template <class Queue>
auto FindId(uint64_t id, Queue* queue) {
  return std::find_if(queue->begin(), queue->end(),
                      [id](const auto& entry) { return entry.second.job.id == id; });
}

}  // namespace

SolverPool::SolverPool(const SolverPoolOptions& options, ServerMetrics* metrics)
    : metrics_(metrics), options_(options) {
  for (int i = 0; i < options.threads; ++i) workers_.emplace_back([this] { Work(); });
}

SolverPool::~SolverPool() { Stop(); }

SolverPool::Clock::time_point SolverPool::DueTime(Clock::time_point now, nanoseconds estimate) {
  return now + kPatience * std::min(estimate, kMostEstimate);
}

Admission SolverPool::Submit(SolveJob job) {
  const Clock::time_point now = Clock::now();
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_) return Admission::kStopped;
  if (queue_.size() >= options_.queue_limit) return Admission::kQueueFull;
  size_t& jobs = accounts_[job.account].all;  // at its limit it was there already
  if (jobs >= LimitOfLocked(job.account)) return Admission::kOverQuota;
  ++jobs;
  const Due due(DueTime(now, job.estimate), ++submissions_);
  queue_.emplace(due, Queued{std::move(job), now});
  metrics_->QueueDepth(static_cast<int64_t>(queue_.size()));
  wake_.notify_one();
  return Admission::kAccepted;
}

bool SolverPool::SubmitBackground(uint64_t id, std::function<void()> run) {
  const Clock::time_point now = Clock::now();
  std::lock_guard<std::mutex> lock(mutex_);
  if (stopped_ || background_.size() >= options_.background_limit) return false;
  if (FindId(id, &background_) != background_.end()) return false;
  SolveJob job;
  job.id = id;
  job.run = std::move(run);
  background_.emplace(Due(now, ++submissions_), Queued{std::move(job), now});
  wake_.notify_one();
  return true;
}

void SolverPool::Withdraw(uint64_t id) {
  Queue::node_type dropped;  // what it holds may not die under the lock
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = FindId(id, &queue_);
  if (found == queue_.end()) return;
  ReleaseLocked(found->second.job.account);
  dropped = queue_.extract(found);
  metrics_->QueueDepth(static_cast<int64_t>(queue_.size()));
}

void SolverPool::SetLimits(size_t queue_limit, const AccountShare& share) {
  std::lock_guard<std::mutex> lock(mutex_);
  options_.queue_limit = queue_limit;
  options_.background_limit = queue_limit;
  options_.share = share;
  wake_.notify_all();
}

size_t SolverPool::queue_limit() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return options_.queue_limit;
}

size_t SolverPool::LimitOf(const Account& account) const {
  std::lock_guard<std::mutex> lock(mutex_);
  return LimitOfLocked(account);
}

size_t SolverPool::LimitOfLocked(const Account& account) const {
  return options_.share.Of(options_.queue_limit + static_cast<size_t>(options_.threads), account);
}

void SolverPool::ReleaseLocked(const Account& account) {
  const auto found = accounts_.find(account);
  if (found != accounts_.end() && --found->second.all == 0) accounts_.erase(found);
}

void SolverPool::Stop() {
  Queue dropped, background;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    dropped.swap(queue_);
    background.swap(background_);
    metrics_->QueueDepth(0);
  }
  wake_.notify_all();
  std::lock_guard<std::mutex> lock(join_mutex_);
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

bool SolverPool::HasWaiting() const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto may_run = [this](const auto& queued) {
    return MayRunLocked(queued.second.job.account);
  };
  const auto runnable = static_cast<size_t>(std::count_if(queue_.begin(), queue_.end(), may_run));
  const size_t idle = static_cast<size_t>(options_.threads) - running_.size();
  return queue_.size() > std::min(idle, runnable);
}

nanoseconds SolverPool::WaitFor(nanoseconds estimate) const {
  return WaitBefore(DueTime(Clock::now(), estimate));
}

nanoseconds SolverPool::Backlog() const { return WaitBefore(Clock::time_point::max()); }

nanoseconds SolverPool::WaitBefore(Clock::time_point due) const {
  const Clock::time_point now = Clock::now();
  nanoseconds work{0};
  std::lock_guard<std::mutex> lock(mutex_);
  const int idle = options_.threads - static_cast<int>(running_.size());
  if (idle > static_cast<int>(queue_.size())) return nanoseconds(0);
  for (const auto& [submission, running] : running_) {
    work += std::max<nanoseconds>(running.start + running.estimate - now, nanoseconds(0));
  }
  for (const auto& [when, queued] : queue_) {
    if (when.first > due) break;
    if (queued.job.measured) work += queued.job.estimate;
  }
  return work / options_.threads;
}

bool SolverPool::MayRunLocked(const Account& account) const {
  const auto found = accounts_.find(account);
  return found == accounts_.end() ||
         found->second.running < options_.share.Of(options_.threads, account);
}

std::optional<std::pair<SolverPool::Queue*, SolverPool::Queue::iterator>> SolverPool::NextLocked() {
  for (auto job = queue_.begin(); job != queue_.end(); ++job) {
    if (MayRunLocked(job->second.job.account)) return std::make_pair(&queue_, job);
  }
  const int most = std::max(options_.threads / 2, 1);
  if (background_.empty() || running_background_ >= most) return std::nullopt;
  return std::make_pair(&background_, background_.begin());
}

void SolverPool::RunLocked(Queue* queue, Queue::iterator job, std::unique_lock<std::mutex>* lock) {
  const bool background = queue == &background_;
  auto next = queue->extract(job);
  Queued& queued = next.mapped();
  const Clock::time_point now = Clock::now();
  running_.emplace(next.key().second,
                   Running{queued.job.measured ? queued.job.estimate : nanoseconds(0), now});
  if (background) {
    ++running_background_;
  } else {
    metrics_->QueueDepth(static_cast<int64_t>(queue_.size()));
    metrics_->QueueWaited(std::chrono::duration<double>(now - queued.submitted).count());
  }
  metrics_->SolversBusy(static_cast<int64_t>(running_.size()));
  const Account account = queued.job.account;
  if (!background) ++accounts_[account].running;
  lock->unlock();
  queued.job.run();
  queued.job.run = nullptr;  // what it holds may not die under the lock
  lock->lock();
  running_.erase(next.key().second);
  metrics_->SolversBusy(static_cast<int64_t>(running_.size()));
  if (background) {
    --running_background_;
    return;
  }
  --accounts_[account].running;
  ReleaseLocked(account);
  // Other threads may have passed over this account's jobs.
  wake_.notify_all();
}

void SolverPool::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopped_ || NextLocked().has_value(); });
    if (stopped_) return;
    const auto [queue, job] = *NextLocked();
    RunLocked(queue, job, &lock);
  }
}

}  // namespace stowage
