// Single flight: who waits for which solve.
//
// A flight is one solve for a problem and a budget. Callers of equal canonical bytes and budget
// share it. It is stopped when the last of them has left, unless that one may come back: then it is
// deserted, and joined like any other, until it is ended. Its solve has a deadline of its own: the
// latest of theirs, less the time that answers take, so that a search has its best plan by then. However
// many join, it is no later than a longest time after the start: what is not found by then is left to
// another flight of those that have time.
#ifndef STOWAGE_SERVER_SERVICE_FLIGHT_TABLE_H_
#define STOWAGE_SERVER_SERVICE_FLIGHT_TABLE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "server/entries/planning_problem.h"
#include "server/runtime/account.h"
#include "server/runtime/solver_pool.h"
#include "server/service/compute_plan.h"
#include "server/service/flight_news.h"
#include "server/store/leased_solve.h"
#include "solvers/base/tracer.h"

namespace stowage {

struct Flight;

// A budget that is set while others read it: they get it, or nothing. Thread-safe.
class AtomicBudget {
 public:
  AtomicBudget& operator=(std::optional<Bytes> bytes) {
    value_ = bytes ? bytes->value() : kNone;
    return *this;
  }
  std::optional<Bytes> get() const {
    const int64_t value = value_;
    return value == kNone ? std::nullopt : std::make_optional(Bytes(value));
  }

 private:
  static constexpr int64_t kNone = std::numeric_limits<int64_t>::min();

  std::atomic<int64_t> value_{kNone};
};

// One caller of ComputePlan until it is answered.
class PlanCall {
 public:
  using Clock = std::chrono::steady_clock;

  PlanCall(uint64_t call_id, const Account& of_account,
           std::optional<std::chrono::steady_clock::time_point> call_deadline,
           ComputeCallback callback)
      : id(call_id), account(of_account), deadline(call_deadline), done(std::move(callback)) {}

  const uint64_t id;
  const Account account;
  const std::optional<std::chrono::steady_clock::time_point> deadline;
  ComputeCallback done;
  std::atomic<bool> answered{false};         // whoever sets it calls `done`
  std::shared_ptr<PlanningProblem> problem;  // changed by nobody but FlightTable::Join
  Asked asked = Asked::kPlan;
  std::optional<BatchRequest> batches;  // of kBatches, which nobody shares
  bool least = false;                   // asks for the least budget
  // Nothing while "least" is not resolved: the cache may do that when a flight has handed the call
  // back, while Latest looks.
  AtomicBudget budget;
  Clock::time_point limit{};          // when it gets an error; set before it joins a flight
  std::chrono::nanoseconds margin{};  // before the limit, for the answer
  TraceScope trace;
  Span joined;  // from when it joined another call's flight; set before anybody can answer it

  std::function<void()> changed;  // told when there is news; empty: does not watch
  // Of the news, what it was shown last; used by PlanningService::Latest alone.
  std::shared_ptr<const Plan> shown;
  std::optional<Nanos> shown_makespan;

  // Until when it would have a search go on.
  Clock::time_point search_until() const { return limit - 2 * margin; }

 private:
  friend class FlightTable;
  std::shared_ptr<Flight> flight_;
  bool left_ = false;
};

struct Flight {
  explicit Flight(std::chrono::steady_clock::time_point deadline) : stop(deadline) {}

  uint64_t id = 0;
  std::shared_ptr<const PlanningProblem> problem;  // of the caller that started it
  Asked asked = Asked::kPlan;
  std::optional<BatchRequest> batches;  // of kBatches, which nobody shares
  std::optional<Bytes> budget;          // nothing: "least", to be resolved by the flight
  uint64_t leader = 0;                  // id of the call that started it
  StopToken stop;
  FlightNews news;
  // Its solve has begun.
  std::atomic<bool> solves{false};
  SolveJob job;      // without what it runs: whose it is, and how long it may take
  TraceScope trace;  // of the call that started it

  // Of the one thread that has the flight at a time.
  std::optional<Bytes> resolved;  // "least", once it was looked for
  LeaseWait wait;                 // while another server solves
  Span leasing;                   // until it is known who solves, where servers share plans
  std::optional<Turn> turn;       // to solve; holds the lease until the plan is kept

 private:
  friend class FlightTable;
  PlanCall::Clock::time_point latest_{};  // deadline
  std::vector<std::shared_ptr<PlanCall>> calls_;
  bool listed_ = false;
};

// Thread-safe.
class FlightTable {
 public:
  explicit FlightTable(std::chrono::nanoseconds longest = std::chrono::hours(24))
      : longest_(longest) {}

  struct Joined {
    std::shared_ptr<Flight> flight;  // null: the call has left already
    bool created = false;            // the caller has to start it
  };
  // A call that joins gives its canonical bytes up for the equal ones of the flight.
  Joined Join(const std::shared_ptr<PlanCall>& call);

  // Whether there is a flight that the call would join.
  bool Flies(const PlanCall& call) const;

  // Takes the call out for good. Returns its flight if it was the last one there: that flight has
  // been told to stop.
  std::shared_ptr<Flight> Leave(const std::shared_ptr<PlanCall>& call);

  // The same, but the flight that is returned goes on: it is deserted.
  std::shared_ptr<Flight> Desert(const std::shared_ptr<PlanCall>& call);

  // Tells the flight, or all, to stop and ends it, where it is deserted still.
  void EndDeserted(const std::shared_ptr<Flight>& flight);
  void EndAllDeserted();

  // Those of its calls that watch.
  std::vector<std::shared_ptr<PlanCall>> Watchers(const Flight& flight) const;

  // Of a call that waits; else null.
  std::shared_ptr<Flight> FlightOf(const PlanCall& call) const;

  // Ends a flight; returns who still waits for it.
  std::vector<std::shared_ptr<PlanCall>> Land(const std::shared_ptr<Flight>& flight);

  // Ends a flight whose deadline came before it found anything: nobody joins any more. Returns those
  // who would have had it go on; the others stay with it until they leave.
  std::vector<std::shared_ptr<PlanCall>> LandLate(const std::shared_ptr<Flight>& flight);

  // Tells all flights to stop and ends them; returns who waited.
  std::vector<std::shared_ptr<PlanCall>> LandAll();

 private:
  using Key = std::tuple<Digest, Asked, std::optional<int64_t>>;

  static Key KeyOf(const Flight& flight);
  // The flight that the call was the last one of; else null.
  std::shared_ptr<Flight> LeaveLocked(const std::shared_ptr<PlanCall>& call);
  void StopLocked(const std::shared_ptr<Flight>& flight);
  std::vector<std::shared_ptr<PlanCall>> LandLocked(const std::shared_ptr<Flight>& flight);

  const std::chrono::nanoseconds longest_;
  mutable std::mutex mutex_;
  std::map<Key, std::shared_ptr<Flight>> listed_;
  std::map<uint64_t, std::shared_ptr<Flight>> all_;
  uint64_t next_id_ = 1;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_SERVICE_FLIGHT_TABLE_H_
