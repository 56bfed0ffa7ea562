// A gRPC channel that is created at its first use, replaced when its server was away, and refused
// in a forked child. Internal to client/rpc. Thread-safe.
#ifndef STOWAGE_CLIENT_RPC_GRPC_CHANNEL_H_
#define STOWAGE_CLIENT_RPC_GRPC_CHANNEL_H_

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/rpc/credentials.h"
#include "client/rpc/grpc_options.h"
#include "client/rpc/plan_values.h"

namespace stowage {

class GrpcChannel {
 public:
  using Clock = CallOptions::Clock;

  explicit GrpcChannel(const GrpcOptions& options) : options_(options), token_(options) {}
  ~GrpcChannel();
  GrpcChannel(const GrpcChannel&) = delete;
  GrpcChannel& operator=(const GrpcChannel&) = delete;

  // Readies a call with a request of `bytes`: the channel for it, connected or failed to connect at
  // once (a call on it then tells why); deadline, token and traceparent go into `context`. INVALID_ARGUMENT for
  // options that CheckGrpcOptions refuses and files that cannot be read, RESOURCE_EXHAUSTED for a
  // request over the limit, UNAVAILABLE if nothing is decided within the connect timeout, CANCELLED,
  // FAILED_PRECONDITION in a forked child (which may have inherited locks that nobody opens: none is
  // taken before).
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Begin(int64_t bytes, const CallOptions& options,
                                                       grpc::ClientContext* context);

  // The error of a call on `channel`, with a hint. Gives the channel up if its server was away: gRPC
  // would keep refusing for its own backoff; a new channel tries at once, so that the caller's
  // retries are real ones. A call that was ended, though `cancel`, null for none, has not: a server that stops does so with
  // calls that come before its clients know, which is UNAVAILABLE.
  absl::Status Failed(const std::shared_ptr<grpc::Channel>& channel, absl::Status status,
                      const CancelToken* cancel);

  // "stowaged at <address>".
  std::string name() const;

 private:
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Connect(Clock::duration patience,
                                                         const CancelToken* cancel);
  void Discard(const std::shared_ptr<grpc::Channel>& channel);
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Get();

  const GrpcOptions options_;
  BearerToken token_;
  std::mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_;
};

// How long a call may wait for a connection, counted from now: see GrpcOptions::connect_timeout.
GrpcChannel::Clock::duration ConnectPatience(const GrpcOptions& options, const CallOptions& call);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_RPC_GRPC_CHANNEL_H_
