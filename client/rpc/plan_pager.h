// Turns the pages of ListPlans.
//
//   PlanPager pager(connection, query);
//   while (!pager.done()) { auto plans = pager.Next(options); ... }
#ifndef STOWAGE_CLIENT_RPC_PLAN_PAGER_H_
#define STOWAGE_CLIENT_RPC_PLAN_PAGER_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/rpc/plan_connection.h"

namespace stowage {

// Not thread-safe. The connection outlives it.
class PlanPager {
 public:
  PlanPager(PlanConnection* connection, ListQuery query)
      : connection_(connection), query_(std::move(query)) {}

  bool done() const { return done_; }

  // The next page. After an error the same page may be asked for again; INTERNAL if the server
  // sends the way back to a page that was just read, which would never end.
  absl::StatusOr<std::vector<ListedPlan>> Next(const CallOptions& options);

 private:
  PlanConnection* const connection_;
  ListQuery query_;
  bool done_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_PLAN_PAGER_H_
