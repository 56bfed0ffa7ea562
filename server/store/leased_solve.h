// Before a solve: is another server at it, or has one just done it?
#ifndef STOWAGE_SERVER_STORE_LEASED_SOLVE_H_
#define STOWAGE_SERVER_STORE_LEASED_SOLVE_H_

#include <chrono>
#include <functional>
#include <memory>

#include "server/observe/server_metrics.h"
#include "server/store/solve_lease.h"

namespace stowage {

struct LeasedSolveOptions {
  // Between two looks while another server solves: the first pause, doubled up to the longest.
  std::chrono::nanoseconds first_pause = std::chrono::milliseconds(20);
  std::chrono::nanoseconds longest_pause = std::chrono::milliseconds(200);
  // For another server's solve; after that this one solves it, too.
  std::chrono::nanoseconds longest_wait = std::chrono::minutes(10);
  // How long a lease lives that nobody renews: where nobody can say, one that another server held a
  // shorter time ago counts as held. So a store of leases that fails over has nobody solve twice.
  std::chrono::nanoseconds lease_time = std::chrono::seconds(5);
};

enum class SolveTurn {
  kSolve,  // it is this server's to solve; `held` may be null
  kFound,  // the look found it
  kWait,   // another server is at it: ask again after LeaseWait::pause
};

// Of one question, from its first Take to the last.
struct LeaseWait {
  std::chrono::nanoseconds pause{0};
  std::chrono::steady_clock::time_point until{};  // set once it waits
  std::chrono::steady_clock::time_point taken{};  // when another server was last known to be at it
};

struct Turn {
  SolveTurn turn = SolveTurn::kSolve;
  std::unique_ptr<HeldLease> held;  // to be kept until the solve's plan is in the store
};

// Thread-safe.
class LeasedSolve {
 public:
  // Both outlive this object.
  LeasedSolve(const LeasedSolveOptions& options, SolveLease* lease, ServerMetrics* metrics);

  // Returns at once, or nearly: while another server solves the question nobody's thread waits. `look`
  // says whether the plan is in the store by now: it reads by Access::kUpdate, where other servers'
  // plans are seen. It is called once with the lease in hand, too (another server may have solved and
  // let go before this one asked), and not at all where servers share nothing.
  Turn Take(const SolveQuestion& question, const std::function<bool()>& look, LeaseWait* wait);

  // Of a question whose plan is found before the next Take: whether it has waited for another server, which is counted once.
  bool Found(LeaseWait* wait);

  // Take for work that nobody waits for: kFound, too, when another server is at it.
  Turn TryNow(const SolveQuestion& question, const std::function<bool()>& look);

 private:
  const LeasedSolveOptions options_;
  SolveLease* const lease_;
  ServerMetrics* const metrics_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_LEASED_SOLVE_H_
