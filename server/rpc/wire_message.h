// Messages as the bytes that gRPC moves. All RPCs take and give bytes: what gRPC cannot parse itself
// it answers with UNIMPLEMENTED, and neither asks who calls nor lets anybody count or log it.
#ifndef STOWAGE_SERVER_RPC_WIRE_MESSAGE_H_
#define STOWAGE_SERVER_RPC_WIRE_MESSAGE_H_

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"
#include "server/rpc/request_limits.h"

namespace stowage {

// The bytes of a request, which gRPC keeps until the call is done, so that they end before it. Once for
// a call.
grpc::ByteBuffer TakeRequest(const grpc::ByteBuffer* request);

// INVALID_ARGUMENT made by FieldError when the bytes are no such message. The bytes stay.
absl::Status ParseRequest(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* request);

// Into `bytes`, which are empty; or the error of CheckSize. O(answer).
absl::Status WriteAnswer(const google::protobuf::MessageLite& answer, const RequestLimits& limits,
                         grpc::ByteBuffer* bytes);

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_WIRE_MESSAGE_H_
