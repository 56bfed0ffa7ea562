#include "client/rpc/fallback_connection.h"

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/rpc/cancel_token.h"
#include "client/rpc/fork_guard.h"
#include "client/rpc/peer_absence.h"
#include "client/rpc/plan_values.h"
#include "client/rpc/status_of.h"
#include "proto/codec/grpc_status.h"
#include "solvers/base/without_exceptions.h"
#include "solvers/schedule/plan.h"

namespace stowage {
namespace {

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

ProgressCallback SideCallWait::Listener() {
  if (!progress_) return {};
  return [this](const PlanProgress& so_far) { Hear(so_far); };
}

ProgressCallback SideCallWait::Teller() {
  if (!progress_) return {};
  return [this](const PlanProgress& so_far) {
    Hear(so_far);
    std::unique_lock<std::mutex> lock(mutex_);
    TellAll(&lock);
  };
}

void SideCallWait::Hear(const PlanProgress& so_far) {
  constexpr size_t kMostHeard =
      64;  // of a callback that is slower than those beside, the latest is enough
  const std::lock_guard<std::mutex> lock(mutex_);
  share_ = std::max(share_, so_far.share);
  const Plan* const best = so_far.best;
  if (best != nullptr &&
      (best_ == nullptr || best->prediction.makespan < best_->prediction.makespan)) {
    best_ = std::make_shared<const Plan>(*best);
  }
  if (heard_.size() == kMostHeard) heard_.pop_back();
  heard_.push_back({share_, best_});
  changed_.notify_all();
}

void SideCallWait::TellAll(std::unique_lock<std::mutex>* lock) {
  const std::deque<Heard> heard = std::exchange(heard_, {});
  lock->unlock();
  for (const Heard& next : heard) progress_({next.share, next.best.get()});
  lock->lock();
}

using Clock = CallOptions::Clock;

// A server that has shed the call, not one that a limit of the request's own forbids it to take.
bool IsBusy(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && GetRetryDelay(status).has_value();
}

// What a server has to say of a plan that is being made here, too: its answer, errors included, unless
// it has none to give.
bool IsAnswered(const absl::Status& status) {
  return !absl::IsUnavailable(status) && !IsBusy(status) && !absl::IsDeadlineExceeded(status);
}

using PlanAnswer = absl::StatusOr<PlanReply>;
using SidePlan = SideCall<PlanAnswer>;

// Whose answer a call gets; null while that is open. A plan, or that there is none, ends the wait for a
// server that thinks; an error does not, nor a search that has come to nothing.
const SidePlan* FirstOf(const SidePlan& primary, const SidePlan& second) {
  if (primary.done() && IsAnswered(primary.result().status())) return &primary;
  if (!second.done()) return nullptr;
  const PlanAnswer& here = second.result();
  const bool is_plan = here.ok() && here->plan.status != PlanStatus::kNotFound;
  return is_plan || primary.done() ? &second : nullptr;
}

class FallbackConnection : public PlanConnection {
 public:
  FallbackConnection(std::unique_ptr<PlanConnection> primary,
                     std::unique_ptr<PlanConnection> fallback,
                     std::function<void(const std::string&)> said, const FallbackPolicy& policy)
      : primary_(std::move(primary)),
        fallback_(std::move(fallback)),
        said_(std::move(said)),
        policy_(policy),
        absence_(policy.first_pause, policy.longest_pause) {}

  absl::StatusOr<PlanReply> GetPlan(const std::vector<PlanKey>& keys, const Budget& budget,
                                    const CallOptions& options) override {
    return Call(NextTurn(), options, [&](PlanConnection* to, const CallOptions& limited) {
      return Soon(to, limited,
                  [&](const CallOptions& given) { return to->GetPlan(keys, budget, given); });
    });
  }

  absl::StatusOr<PlanReply> ComputePlan(const Profile& profile, const Budget& budget,
                                        const KeyOptions& key_options,
                                        const CallOptions& options) override {
    const auto asked = std::make_shared<const Question>(Question{profile, budget, key_options});
    return PlanInTime(
        {}, options,
        [asked](PlanConnection* to, const ProgressCallback&, const CallOptions& limited) {
          return to->ComputePlan(asked->profile, asked->budget, asked->key_options, limited);
        });
  }

  absl::StatusOr<PlanReply> WatchPlan(const Profile& profile, const Budget& budget,
                                      const KeyOptions& key_options,
                                      const ProgressCallback& progress,
                                      const CallOptions& options) override {
    const auto asked = std::make_shared<const Question>(Question{profile, budget, key_options});
    return PlanInTime(
        progress, options,
        [asked](PlanConnection* to, const ProgressCallback& told, const CallOptions& limited) {
          return to->WatchPlan(asked->profile, asked->budget, asked->key_options, told, limited);
        });
  }

  absl::StatusOr<FrontierReply> GetFrontier(const Profile& profile, const KeyOptions& key_options,
                                            int max_points, const CallOptions& options) override {
    return Call(NextTurn(), options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->GetFrontier(profile, key_options, max_points, limited);
    });
  }

  absl::StatusOr<BatchReply> FitBatch(const BatchQuery& query,
                                      const CallOptions& options) override {
    return Call(NextTurn(), options, [&](PlanConnection* to, const CallOptions& limited) {
      return to->FitBatch(query, limited);
    });
  }

  absl::StatusOr<Capabilities> GetCapabilities(const CallOptions& options) override {
    // What the server is, nobody else can say: its tenant is part of every key.
    const PeerAbsence::Turn turn = NextTurn();
    if (turn == PeerAbsence::Turn::kLeave) {
      return absl::UnavailableError(
          absl::StrCat(primary_->name(), " was not reachable a moment ago"));
    }
    return Ask(turn, options, [&](PlanConnection* to, const CallOptions& limited) {
      return Soon(to, limited,
                  [&](const CallOptions& given) { return to->GetCapabilities(given); });
    });
  }

  absl::StatusOr<std::string> ExplainPlan(const PlanKey& key, const Budget& budget,
                                          const CallOptions& options) override {
    return Noted(primary_->ExplainPlan(key, budget, options));
  }

  absl::StatusOr<ExecutionVerdict> ReportExecution(const ExecutionMeasurement& measurement,
                                                   const CallOptions& options) override {
    return Noted(primary_->ReportExecution(measurement, options));
  }

  absl::StatusOr<PlanPage> ListPlans(const ListQuery& query, const CallOptions& options) override {
    return Noted(primary_->ListPlans(query, options));
  }

  absl::Status ChangePlan(const PlanRevision& revision, RevisionAction action,
                          const ChangeTerms& terms, const CallOptions& options) override {
    return Noted(primary_->ChangePlan(revision, action, terms, options));
  }

  absl::StatusOr<bool> DeletePlan(const PlanKey& key, const ChangeTerms& terms,
                                  const CallOptions& options) override {
    return Noted(primary_->DeletePlan(key, terms, options));
  }

  absl::StatusOr<ExportedDecisions> ExportDecisions(const std::string& page_token,
                                                    int32_t page_size,
                                                    const CallOptions& options) override {
    return Noted(primary_->ExportDecisions(page_token, page_size, options));
  }

  absl::StatusOr<ImportedDecisions> ImportDecisions(const std::vector<std::string>& decisions,
                                                    const CallOptions& options) override {
    return Noted(primary_->ImportDecisions(decisions, options));
  }

  std::string name() const override {
    return absl::StrCat(primary_->name(), ", or else ", fallback_->name());
  }

 private:
  // What a plan is asked for with: a call that goes on alone has it of its own.
  struct Question {
    Profile profile;
    Budget budget;
    KeyOptions key_options;
  };
  using MakesPlan =
      std::function<PlanAnswer(PlanConnection*, const ProgressCallback&, const CallOptions&)>;

  // The primary's answer.
  template <class Result>
  Result Noted(Result result) {
    Note(StatusOf(result));
    return result;
  }

  void Note(const absl::Status& status) {
    if (!absl::IsUnavailable(status) && !absl::IsCancelled(status)) absence_.Heard();
  }

  PeerAbsence::Turn NextTurn() { return absence_.Next(policy_.now()); }

  // A call to the primary.
  struct Attempt {
    PeerAbsence::Turn turn;
    Clock::time_point start;
    CallOptions limited;
  };

  // With the time for reaching the primary.
  CallOptions Limited(const CallOptions& options, PeerAbsence::Turn turn) const {
    CallOptions limited = options;
    const Clock::time_point now = policy_.now();
    const auto reach_within = [&](Clock::duration time) {
      limited.reach_by = std::min(limited.reach_by, now + time);
    };
    if (options.has_deadline()) reach_within((options.deadline - now) / 4);
    if (turn == PeerAbsence::Turn::kProbe) reach_within(policy_.probe);
    return limited;
  }

  // Whether a call that was given so little time has used it up: that says nothing of the primary.
  bool Hurried(const Attempt& attempt) const {
    const Clock::time_point limit = attempt.limited.reach_by;
    return policy_.now() >= limit && limit - attempt.start < policy_.probe;
  }

  Attempt Begin(PeerAbsence::Turn turn, const CallOptions& options) const {
    return {turn, policy_.now(), Limited(options, turn)};
  }

  // What it has come to.
  template <class Result>
  Result Judged(const Attempt& attempt, Result result) {
    Note(result.status());
    const bool away = absl::IsUnavailable(result.status());
    if (away && !Hurried(attempt)) absence_.Missed(attempt.turn, policy_.now());
    return result;
  }

  template <class Function>
  auto Ask(PeerAbsence::Turn turn, const CallOptions& options, const Function& function)
      -> decltype(function(nullptr, options)) {
    const Attempt attempt = Begin(turn, options);
    return Judged(attempt, function(primary_.get(), attempt.limited));
  }

  template <class Function>
  auto Call(PeerAbsence::Turn turn, const CallOptions& options, const Function& function)
      -> decltype(function(nullptr, options)) {
    if (turn == PeerAbsence::Turn::kLeave) {
      // Found out by a call that does not fall back, GetCapabilities say.
      Say("is not reachable (it was not a moment ago)");
      return function(fallback_.get(), options);
    }
    return OrElse(Ask(turn, options, function), options, function);
  }

  // The primary's answer, if it has one.
  template <class Result, class Function>
  Result OrElse(Result result, const CallOptions& options, const Function& function) {
    if (!absl::IsUnavailable(result.status()) && !IsBusy(result.status())) return result;
    SayWhy(result.status());
    return function(fallback_.get(), options);
  }

  // How long the primary has for itself, of a call with these limits: no longer than for being reached. 0 where
  // nothing goes on beside it: a forked child is to start no threads.
  Clock::duration Patience(const CallOptions& limited) const {
    const Clock::duration patience = policy_.patience;
    const bool has_any = patience > Clock::duration::zero() && patience < FallbackPolicy::kNever;
    if (!has_any || InForkedChild()) return Clock::duration::zero();
    return std::min<Clock::duration>(patience, limited.reach_by - policy_.now());
  }

  // What a server that is well answers at once: one that does not is as one that is away.
  template <class Function>
  auto Soon(PlanConnection* to, const CallOptions& options, const Function& function)
      -> decltype(function(options)) {
    const bool is_primary = to == primary_.get();
    const Clock::duration patience = is_primary ? Patience(options) : Clock::duration::zero();
    if (patience <= Clock::duration::zero()) return function(options);
    SideCallWait wait;
    SideCall<decltype(function(options))> asked(&wait, options, function);
    const bool in_time = wait.Until(Clock::now() + patience, [&] { return asked.done(); });
    auto& result = asked.Stop();
    const bool callers_end = options.cancel && options.cancel->cancelled();
    if (in_time || callers_end || !absl::IsCancelled(result.status())) return std::move(result);
    const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
    return absl::UnavailableError(absl::StrCat("no answer within ", time.count(), " ms"));
  }

  // `make` has a plan made, which may take long: by the primary, and beside it here once it has had its time.
  PlanAnswer PlanInTime(const ProgressCallback& progress, const CallOptions& options,
                        const MakesPlan& make) {
    const PeerAbsence::Turn turn = NextTurn();
    const Attempt attempt = Begin(turn, options);
    const Clock::duration patience = Patience(attempt.limited);
    auto wait = std::make_unique<SideCallWait>(progress);
    const auto on_this_thread = [&](PlanConnection* to, const CallOptions& given) {
      return make(to, wait->Teller(), given);
    };
    if (turn == PeerAbsence::Turn::kLeave || patience <= Clock::duration::zero()) {
      return Call(turn, options, on_this_thread);
    }
    const auto beside = [make, told = wait->Listener()](PlanConnection* to) {
      return [make, told, to](const CallOptions& given) { return make(to, told, given); };
    };
    auto primary = std::make_unique<SidePlan>(wait.get(), attempt.limited, beside(primary_.get()));
    if (wait->Until(Clock::now() + patience, [&] { return primary->done(); })) {
      return OrElse(Judged(attempt, std::move(primary->Stop())), options, on_this_thread);
    }
    SidePlan second(wait.get(), options, beside(fallback_.get()));
    return FirstAnswer(attempt, {std::move(wait), std::move(primary)}, &second);
  }

  // A call to the primary, and those who wait for it.
  struct Asked {
    std::unique_ptr<SideCallWait> wait;
    std::unique_ptr<SidePlan> call;  // goes first
  };

  // Of two calls that go on. The second has ended then.
  PlanAnswer FirstAnswer(const Attempt& attempt, Asked asked, SidePlan* second) {
    const SidePlan* first = nullptr;
    bool has_ended = false;
    asked.wait->Until(Clock::time_point::max(), [&] {
      first = FirstOf(*asked.call, *second);
      has_ended = asked.call->done();
      return first != nullptr;
    });
    PlanAnswer& here = second->Stop();
    if (!has_ended) {
      SayWhy(absl::OkStatus());
      left_.Take(std::move(asked));
      return std::move(here);
    }
    PlanAnswer of_primary = Judged(attempt, std::move(asked.call->Stop()));
    if (first == asked.call.get()) return of_primary;
    SayWhy(of_primary.status());
    return std::move(here);
  }

  // Calls to the primary that nobody waits for any more: the server is to have the plan for those who ask next. Few, and
  // they end with the connection.
  class LeftCalls {
   public:
    ~LeftCalls() {
      if (!InForkedChild()) return;
      for (Asked& asked : asked_) {  // their threads do not exist here
        asked.call.release();
        asked.wait.release();
      }
    }
    void Take(Asked asked) {
      constexpr size_t kMost = 4;
      std::list<Asked> over;  // which end outside of the lock
      const std::lock_guard<std::mutex> lock(mutex_);
      asked_.push_back(std::move(asked));
      for (auto it = asked_.begin(); it != asked_.end();) {
        const auto next = std::next(it);
        if (HasEnded(*it) || asked_.size() > kMost) over.splice(over.end(), asked_, it);
        it = next;
      }
    }

   private:
    static bool HasEnded(const Asked& asked) {
      return asked.wait->Ask([&] { return asked.call->done(); });
    }

    std::mutex mutex_;
    std::list<Asked> asked_;  // the oldest first
  };

  // `status`: of a primary whose place the fallback takes.
  void SayWhy(const absl::Status& status) {
    if (absl::IsUnavailable(status)) {
      Say(absl::StrCat("is not reachable (", status.message(), ")"));
    } else if (IsBusy(status)) {
      Say(absl::StrCat("is busy (", status.message(), ")"));
    } else {
      Say("has not answered yet");
    }
  }

  void Say(absl::string_view what) {
    if (!said_) return;
    std::call_once(once_, [&] {
      said_(absl::StrCat(primary_->name(), " ", what, ": falling back to ", fallback_->name()));
    });
  }

  const std::unique_ptr<PlanConnection> primary_;
  const std::unique_ptr<PlanConnection> fallback_;
  const std::function<void(const std::string&)> said_;
  const FallbackPolicy policy_;
  PeerAbsence absence_;
  std::once_flag once_;
  LeftCalls left_;  // goes first
};

}  // namespace

std::unique_ptr<PlanConnection> MakeFallbackConnection(std::unique_ptr<PlanConnection> primary,
                                                       std::unique_ptr<PlanConnection> fallback,
                                                       std::function<void(const std::string&)> said,
                                                       const FallbackPolicy& policy) {
  return std::make_unique<FallbackConnection>(std::move(primary), std::move(fallback),
                                              std::move(said), policy);
}

}  // namespace stowage
