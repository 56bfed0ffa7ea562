// GetPlan's answer from bytes that are kept: the hot path answers by hand-over, not by copy.
#ifndef STOWAGE_SERVER_RPC_GET_PLAN_BYTES_H_
#define STOWAGE_SERVER_RPC_GET_PLAN_BYTES_H_

#include <grpcpp/support/byte_buffer.h>

#include "server/rpc/reply_cache.h"
#include "server/service/planning_service.h"

namespace stowage {

// The GetPlanResponse of a plan from the cache, `written` as the ReplyCache has it; of the basic view, and that the
// caller holds its schedule.
grpc::ByteBuffer GetPlanReply(const CachedPlan& cached, const WrittenPlan& written,
                              bool basic = false, bool unchanged = false);

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_GET_PLAN_BYTES_H_
