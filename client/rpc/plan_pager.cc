#include "client/rpc/plan_pager.h"

namespace stowage {

absl::StatusOr<std::vector<ListedPlan>> PlanPager::Next(const CallOptions& options) {
  if (done_) return std::vector<ListedPlan>();
  absl::StatusOr<PlanPage> page = connection_->ListPlans(query_, options);
  if (!page.ok()) return page.status();
  if (!page->next_page_token.empty() && page->next_page_token == query_.page_token) {
    return absl::InternalError("the server's next page is the one that it has just sent");
  }
  query_.page_token = std::move(page->next_page_token);
  done_ = query_.page_token.empty();
  return std::move(page->plans);
}

}  // namespace stowage
