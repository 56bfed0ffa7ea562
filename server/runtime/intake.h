// Threads for what gRPC's own must not do: wait for a slow store, convert large requests.
//
// Work of one kind waits in a lane of its own with threads of its own, so that none holds up another.
// In a lane accounts have turns: one task each, however many an account has waiting. An account has at
// most its share of a lane's threads and of its places, so what it waits for leaves the others theirs.
#ifndef STOWAGE_SERVER_RUNTIME_INTAKE_H_
#define STOWAGE_SERVER_RUNTIME_INTAKE_H_

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "server/observe/server_metrics.h"
#include "server/runtime/account.h"

namespace stowage {

// Called once: with OK to do its work, or with why it is not to be done, for whoever waits for it.
using IntakeTask = std::function<void(const absl::Status& admitted)>;

// One lane. Thread-safe; O(log accounts) a task. Tasks of one account start in the order they were
// submitted.
class FairLane {
 public:
  enum class Taken { kYes, kFull, kFullOfAccount, kStopped };

  // Told how many seconds a task has waited, as it starts; cheap.
  using Waited = std::function<void(double seconds)>;

  // Both >= 1; the limit is that of tasks that wait.
  FairLane(int threads, size_t queue_limit, const AccountShare& share, Waited waited = nullptr);
  ~FairLane();

  Taken TrySubmit(const Account& account, IntakeTask task);
  // From now on. What waits and runs stays, also where it is more; what the share now lets run does.
  void SetShare(const AccountShare& share);

  // Refuses more, tells what waits UNAVAILABLE (DRAINING) and waits for what runs. Idempotent; not to be
  // called by a task.
  void Stop();

  // That wait or run. O(accounts).
  size_t tasks();

  // Tasks that may wait; of one account.
  size_t queue_limit() const { return queue_limit_; }
  size_t LimitOf(const Account& account);

 private:
  struct Waiting {
    IntakeTask task;
    std::chrono::steady_clock::time_point since;
  };
  struct Work {
    std::deque<Waiting> waiting;
    int running = 0;
    bool has_turn = false;  // is in turns_
  };

  // Queues the account for its next task if it has one and may run it.
  void GiveTurnLocked(const Account& account, Work* work);
  void RunNextLocked(std::unique_lock<std::mutex>* lock);
  void Serve();

  const int threads_;
  const size_t queue_limit_;
  const Waited waited_;
  std::mutex mutex_;
  std::condition_variable wake_;
  AccountShare share_;
  std::map<Account, Work> accounts_;  // those with tasks that wait or run
  std::deque<Account> turns_;         // those whose next task may run
  size_t waiting_ = 0;
  bool stopped_ = false;
  std::mutex join_mutex_;
  std::vector<std::thread> workers_;
};

struct IntakeOptions {
  // Of each lane, in the order of Lane; >= 1.
  std::array<int, kLaneCount> threads = {4, 2, 2, 4, 2};
  size_t queue_limit = 4096;  // of each lane, >= 1
  AccountShare share;
};

// All lanes. Thread-safe.
class Intake {
 public:
  // `metrics` outlives this object.
  Intake(const IntakeOptions& options, ServerMetrics* metrics);

  FairLane::Taken TrySubmit(Lane lane, const Account& account, IntakeTask task) {
    return lanes_[static_cast<size_t>(lane)]->TrySubmit(account, std::move(task));
  }
  // Of every lane.
  void SetShare(const AccountShare& share);
  void Stop();
  size_t tasks();
  size_t LimitOf(Lane lane, const Account& account) {
    return lanes_[static_cast<size_t>(lane)]->LimitOf(account);
  }

 private:
  std::array<std::unique_ptr<FairLane>, kLaneCount> lanes_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RUNTIME_INTAKE_H_
