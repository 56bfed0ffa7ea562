// A gRPC channel that is created at its first use, replaced when its server was away, and refused
// in a forked child. Internal to client/rpc. Thread-safe.
#ifndef STOWAGE_CLIENT_RPC_GRPC_CHANNEL_H_
#define STOWAGE_CLIENT_RPC_GRPC_CHANNEL_H_

#include <grpcpp/channel.h>

#include <memory>
#include <mutex>

#include "absl/status/statusor.h"
#include "client/rpc/grpc_connection.h"

namespace stowage {

class GrpcChannel {
 public:
  using Clock = CallOptions::Clock;

  explicit GrpcChannel(const GrpcOptions& options) : options_(options) {}
  ~GrpcChannel();
  GrpcChannel(const GrpcChannel&) = delete;
  GrpcChannel& operator=(const GrpcChannel&) = delete;

  // A channel that is connected, or that failed to connect at once: a call on it then tells why.
  // UNAVAILABLE if nothing is decided within the connect timeout, FAILED_PRECONDITION in a forked
  // child.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(Clock::time_point deadline);

  // Gives a channel up after its server was away. gRPC would keep refusing for its own backoff; a
  // new channel tries at once, so that the caller's retries are real ones.
  void Discard(const std::shared_ptr<grpc::Channel>& channel);

 private:
  std::shared_ptr<grpc::Channel> Get();

  const GrpcOptions options_;
  std::mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_GRPC_CHANNEL_H_
