// A fixed number of threads behind a bounded queue: short solves first, no account takes all of it, and
// what nobody waits for comes last.
//
// A job is due a time after its submission that grows with its estimate, and the job that is due first
// runs first. So short jobs pass long ones, but none that comes later than that passes a job that
// waits: nothing starves. Jobs in the background run while nobody waits, on half of the threads at
// most.
#ifndef STOWAGE_SERVER_RUNTIME_SOLVER_POOL_H_
#define STOWAGE_SERVER_RUNTIME_SOLVER_POOL_H_

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "server/observe/server_metrics.h"
#include "server/runtime/account.h"

namespace stowage {

struct SolveJob {
  uint64_t id = 0;
  std::function<void()> run;
  std::chrono::nanoseconds estimate{0};
  bool measured =
      false;        // else the estimate is a guess: it says who comes first, not how long it takes
  Account account;  // whose share of places and threads it takes
};

enum class Admission { kAccepted, kQueueFull, kOverQuota, kStopped };

struct SolverPoolOptions {
  int threads = 2;                // >= 1
  size_t queue_limit = 256;       // >= 1; jobs that may wait
  size_t background_limit = 256;  // the same in the background
  // Of one account: of places and threads together its jobs that wait and run, of the threads those
  // that run. Nobody can take a thread back from a long solve, so an account's next job waits for its
  // own even while threads are idle. Jobs in the background are nobody's.
  AccountShare share = {1.0, 1.0};
};

// Thread-safe. Jobs call nothing of this class but Submit, SubmitBackground, Withdraw and HasWaiting.
class SolverPool {
 public:
  using Clock = std::chrono::steady_clock;

  // `metrics` outlives this object.
  SolverPool(const SolverPoolOptions& options, ServerMetrics* metrics);
  ~SolverPool();

  // Ids are the caller's, none twice at a time.
  Admission Submit(SolveJob job);
  // False when a job of that id waits already, when too many wait, or after Stop. The ids are others
  // than those of Submit.
  bool SubmitBackground(uint64_t id, std::function<void()> run);
  // Takes a job of Submit that has not started out of the queue.
  void Withdraw(uint64_t id);
  // From now on. What waits and runs stays, also where it is more; what the share now lets run does.
  void SetLimits(size_t queue_limit, const AccountShare& share);

  // Drops what is queued, waits for what runs. Idempotent.
  void Stop();

  // Jobs that may wait; of one account, those that may wait and run.
  size_t queue_limit() const;
  size_t LimitOf(const Account& account) const;

  // Whether a job waits that no idle thread may take. O(jobs that wait).
  bool HasWaiting() const;
  // How long a job of that estimate would probably wait.
  std::chrono::nanoseconds WaitFor(std::chrono::nanoseconds estimate) const;
  // Until what is there now has probably ended.
  std::chrono::nanoseconds Backlog() const;

 private:
  struct Queued {
    SolveJob job;
    Clock::time_point submitted;
  };
  struct Running {
    std::chrono::nanoseconds estimate;  // 0 where it is a guess
    Clock::time_point start;
  };
  using Due = std::pair<Clock::time_point, uint64_t>;  // with the submission's number
  using Queue = std::map<Due, Queued>;
  struct Jobs {
    size_t all = 0;  // that wait and run
    int running = 0;
  };

  static Clock::time_point DueTime(Clock::time_point now, std::chrono::nanoseconds estimate);
  std::chrono::nanoseconds WaitBefore(Clock::time_point due) const;
  size_t LimitOfLocked(const Account& account) const;
  bool MayRunLocked(const Account& account) const;
  // The queue and the job in it that a free thread takes; nothing: none may run now.
  std::optional<std::pair<Queue*, Queue::iterator>> NextLocked();
  void ReleaseLocked(const Account& account);
  void RunLocked(Queue* queue, Queue::iterator job, std::unique_lock<std::mutex>* lock);
  void Work();

  ServerMetrics* const metrics_;
  mutable std::mutex mutex_;
  SolverPoolOptions options_;
  std::condition_variable wake_;
  uint64_t submissions_ = 0;
  Queue queue_;
  Queue background_;
  std::map<uint64_t, Running> running_;  // by submission
  int running_background_ = 0;
  std::map<Account, Jobs> accounts_;  // those with jobs that wait or run
  bool stopped_ = false;
  std::mutex join_mutex_;
  std::vector<std::thread> workers_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RUNTIME_SOLVER_POOL_H_
