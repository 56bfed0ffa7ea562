// Calls that go on beside the thread that has made them, each on a thread of its own, and the wait for them there.
// Internal to client/rpc.
#ifndef STOWAGE_CLIENT_RPC_SIDE_CALL_H_
#define STOWAGE_CLIENT_RPC_SIDE_CALL_H_

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "client/rpc/cancel_token.h"
#include "client/rpc/plan_values.h"
#include "solvers/base/without_exceptions.h"
#include "solvers/schedule/plan.h"

namespace stowage {

// Where the thread of a call waits for those beside it, and tells what they say of their progress: there alone, hence
// one at a time, and never once the call has returned. Whoever says it, shares do not fall, and a plan that was told is
// not followed by a slower one. Outlives its calls.
class SideCallWait {
 public:
  using Clock = CallOptions::Clock;

  // `progress` may be empty.
  explicit SideCallWait(ProgressCallback progress = {}) : progress_(std::move(progress)) {}

  // For calls beside: from any thread, told by the one that waits. Empty where nobody listens.
  ProgressCallback Listener();
  // For a call on this thread, told at once. Empty where nobody listens.
  ProgressCallback Teller();

  // Waits until over() says so, or until `limit` (max(): without one), and returns what it said last. It is asked under
  // the lock that calls end under: what they have said before has been told when this returns true.
  template <class Over>
  bool Until(Clock::time_point limit, const Over& over) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      if (!WaitForNews(&lock, limit, over)) return false;
      const bool is_over = over();
      TellAll(&lock);
      if (is_over) return true;
      if (Clock::now() >= limit && !over()) return false;  // however much there is to tell
    }
  }

  // What `over` says, under that lock. Tells nothing.
  template <class Over>
  bool Ask(const Over& over) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return over();
  }

  // A call has ended: `write` says how, for those who wait to see.
  template <class Write>
  void End(const Write& write) {
    const std::lock_guard<std::mutex> lock(mutex_);
    write();
    changed_.notify_all();
  }

 private:
  struct Heard {
    double share;
    std::shared_ptr<const Plan> best;
  };

  template <class Over>
  bool WaitForNews(std::unique_lock<std::mutex>* lock, Clock::time_point limit, const Over& over) {
    const auto news = [&] { return over() || !heard_.empty(); };
    if (limit != Clock::time_point::max()) return changed_.wait_until(*lock, limit, news);
    changed_.wait(*lock, news);
    return true;
  }

  void Hear(const PlanProgress& so_far);
  // Gives the lock up while it tells.
  void TellAll(std::unique_lock<std::mutex>* lock);

  const ProgressCallback progress_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Heard> heard_;  // and not told yet
  double share_ = 0;
  std::shared_ptr<const Plan> best_;
};

// One call, begun by the constructor and over by the end of this object. Where no thread is to be had, it has been made
// on this one by then.
template <class Result>
class SideCall {
 public:
  using Function = std::function<Result(const CallOptions&)>;

  // The function gets the options with a token that the caller's own ends, too.
  SideCall(SideCallWait* wait, CallOptions options, Function function)
      : wait_(wait),
        callers_(std::exchange(options.cancel, std::make_shared<CancelToken>())),
        options_(std::move(options)),
        function_(std::move(function)),
        watch_(callers_.get(), [this] { options_.cancel->Cancel(); }) {
    try {
      thread_ = std::thread([this] { Run(); });
    } catch (const std::exception&) {  // no thread, or no memory for it
      Run();
    }
  }
  ~SideCall() { Stop(); }
  SideCall(const SideCall&) = delete;
  SideCall& operator=(const SideCall&) = delete;

  // Asked within SideCallWait::Until, or after Stop.
  bool done() const { return result_.has_value(); }
  // Of a call that is done.
  const Result& result() const { return *result_; }

  // Ends it unless it is done, and waits for its thread; what it has come to.
  Result& Stop() {
    options_.cancel->Cancel();
    if (thread_.joinable()) thread_.join();
    return *result_;
  }

 private:
  void Run() {
    Result result = WithoutExceptions([this] { return function_(options_); });
    wait_->End([&] { result_ = std::move(result); });
  }

  SideCallWait* const wait_;
  const std::shared_ptr<CancelToken> callers_;
  const CallOptions options_;
  const Function function_;
  const CancelToken::Watch watch_;
  std::optional<Result> result_;
  std::thread thread_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_SIDE_CALL_H_
