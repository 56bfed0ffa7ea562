// GetPlan's messages as the bytes that gRPC moves: the hot path parses by hand-over, not by copy.
#ifndef STOWAGE_SERVER_RPC_GET_PLAN_BYTES_H_
#define STOWAGE_SERVER_RPC_GET_PLAN_BYTES_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "absl/status/status.h"
#include "server/planning/planning_service.h"
#include "server/rpc/reply_cache.h"

namespace stowage {

// INVALID_ARGUMENT when the bytes are no such message: gRPC itself would say UNIMPLEMENTED.
absl::Status ParseRequest(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* request);

// The GetPlanResponse of a plan from the cache, `written` as the ReplyCache has it.
grpc::ByteBuffer GetPlanReply(const CachedPlan& cached, const WrittenPlan& written);

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_GET_PLAN_BYTES_H_
