// Pages of cached plans on the wire.
#ifndef STOWAGE_SERVER_RPC_PLAN_PAGE_H_
#define STOWAGE_SERVER_RPC_PLAN_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/rpc/plan_filter.h"
#include "server/rpc/request_limits.h"
#include "server/service/admin.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {

// Where a page goes on: after a key, or after one revision of it.
struct PagePosition {
  PlanKey key;
  // Budget and number of the revision; nothing: all of the key has been looked at.
  std::optional<std::pair<int64_t, int64_t>> revision;
};

// A position as text, and back; "" is the start, or the end. A token is of one list, which `list` tells apart from
// others: whose it is, of which key, by which filter. Errors: INVALID_ARGUMENT made by FieldError for "page_token".
//
// The hash in it has no secret key: it is there against mistakes, and a caller can make a token for any position. That
// gains nothing. A token says where a page starts and nothing else. What may be listed is decided anew for each page,
// from the caller's tenant and role: a forged token shows what some page of the caller's own lists shows. So any server takes
// the tokens of the others, and servers share no key for it.
std::string ToPageToken(const std::optional<PagePosition>& after, const std::string& list);
absl::StatusOr<std::optional<PagePosition>> FromPageToken(const std::string& token,
                                                          const std::string& list);

// Fills a response with the revisions that a filter takes, up to a number of them and to the size of a message, but
// at least one. Not thread-safe; what it is made from outlives it.
class PageWriter {
 public:
  PageWriter(const PlanFilter& filter, size_t most, const RequestLimits& limits,
             v1::ListPlansResponse* response);

  // The entry's revisions by budget and number, those after `revision` where that is given. False when one that is
  // to be listed does not fit any more.
  bool Add(const ListedEntry& listed,
           const std::optional<std::pair<int64_t, int64_t>>& revision = std::nullopt);

  // Behind what has been looked at; nothing before any.
  const std::optional<PagePosition>& position() const { return position_; }

 private:
  const PlanFilter& filter_;
  const size_t most_;
  size_t bytes_left_;
  v1::ListPlansResponse* const response_;
  std::optional<PagePosition> position_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_PLAN_PAGE_H_
