#include "client/rpc/grpc_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/rpc/error_hints.h"
#include "client/rpc/fork_guard.h"
#include "solvers/base/trace_context.h"
#include "solvers/base/version.h"

namespace stowage {
namespace {

grpc::ChannelArguments Arguments(const GrpcOptions& options) {
  grpc::ChannelArguments arguments;
  const int64_t limit =
      std::min<int64_t>(options.message_limit.value(), std::numeric_limits<int>::max());
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limit));
  arguments.SetMaxSendMessageSize(static_cast<int>(limit));
  // Plans are small and compress badly; profiles are sent once.
  arguments.SetCompressionAlgorithm(GRPC_COMPRESS_NONE);
  arguments.SetUserAgentPrefix(absl::StrCat(
      options.user_agent, options.user_agent.empty() ? "" : " ", "stowage/", kVersion));
  // Connections shared between channels share their backoff too: see Discard.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A peer that is gone without a word is noticed within seconds, not at the deadline of a call: also
  // in a solve of minutes, in which nothing is sent. Servers take a ping every 10 s.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // A replica that is back is used again within seconds, not after gRPC's two minutes.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 5000);
  // A planner is a neighbour; a proxy set for the way out of the cluster does not lead to it.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // How calls are spread is said here, not by a text record of the name.
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // No health is asked for: a server that drains says so at once (GOAWAY), and one that cannot answer is UNAVAILABLE, which
  // retries and routing take elsewhere.
  if (IsSpread(options.address)) {  // by a resolver of its own: see MakeGrpcConnection
    arguments.SetServiceConfigJSON(R"({"loadBalancingConfig":[{"round_robin":{}}]})");
  }
  if (!options.tls.server_name.empty()) arguments.SetSslTargetNameOverride(options.tls.server_name);
  return arguments;
}

}  // namespace

GrpcChannel::Clock::duration ConnectPatience(const GrpcOptions& options, const CallOptions& call) {
  using Duration = GrpcChannel::Clock::duration;
  const auto now = GrpcChannel::Clock::now();
  const auto deadline = call.has_deadline() ? call.deadline : now + options.default_timeout;
  const auto limit = std::min(now + (deadline - now) / 2, call.reach_by);
  return std::clamp<Duration>(limit - now, Duration::zero(), options.connect_timeout);
}

GrpcChannel::~GrpcChannel() {
  // Tearing a channel down takes threads that a forked child does not have: there it is left alone.
  if (channel_ && InForkedChild()) {
    new (std::nothrow) std::shared_ptr<grpc::Channel>(std::move(channel_));
  }
}

std::string GrpcChannel::name() const { return absl::StrCat("stowaged at ", options_.address); }

absl::StatusOr<std::shared_ptr<grpc::Channel>> GrpcChannel::Begin(int64_t bytes,
                                                                  const CallOptions& options,
                                                                  grpc::ClientContext* context) {
  if (bytes > options_.message_limit.value()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the request has ", bytes, " bytes: ", LimitWords(options_)));
  }
  if (absl::Status status = CheckGrpcOptions(options_); !status.ok()) return status;
  if (InForkedChild()) return ForkedChildError();
  if (options.cancel && options.cancel->cancelled()) return absl::CancelledError("cancelled");
  const absl::StatusOr<std::string> token = token_.Get();
  if (!token.ok()) return token.status();
  const Clock::time_point deadline =
      options.has_deadline() ? options.deadline : Clock::now() + options_.default_timeout;
  auto channel = Connect(ConnectPatience(options_, options), options.cancel.get());
  if (!channel.ok()) return Explain(channel.status(), options_);
  context->set_deadline(std::chrono::system_clock::now() + (deadline - Clock::now()));
  if (!token->empty()) context->AddMetadata("authorization", absl::StrCat("Bearer ", *token));
  if (!options.traceparent.empty() && ParseTraceparent(options.traceparent)) {
    context->AddMetadata(kTraceparentHeader, options.traceparent);
  }
  return channel;
}

absl::Status GrpcChannel::Failed(const std::shared_ptr<grpc::Channel>& channel, absl::Status status,
                                 const CancelToken* cancel) {
  if (absl::IsCancelled(status) && (cancel == nullptr || !cancel->cancelled())) {
    status =
        absl::UnavailableError(absl::StrCat("the server has ended the call: ", status.message()));
  }
  // One of many servers that is away is passed over at the next call.
  const bool others = IsSpread(options_.address) && channel->GetState(false) == GRPC_CHANNEL_READY;
  if (absl::IsUnavailable(status) && !others) Discard(channel);
  return Explain(status, options_);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> GrpcChannel::Connect(Clock::duration patience,
                                                                    const CancelToken* cancel) {
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> made = Get();
  if (!made.ok()) return made.status();
  const std::shared_ptr<grpc::Channel> channel = *made;
  const Clock::time_point limit = Clock::now() + patience;
  // A wait for a channel cannot be interrupted: whoever may cancel waits in slices.
  const Clock::duration slice = cancel == nullptr ? patience : std::chrono::milliseconds(20);
  for (;;) {
    const grpc_connectivity_state state = channel->GetState(true);
    if (state == GRPC_CHANNEL_READY || state == GRPC_CHANNEL_TRANSIENT_FAILURE) return channel;
    if (cancel != nullptr && cancel->cancelled()) return absl::CancelledError("cancelled");
    const Clock::duration wait = std::min(slice, limit - Clock::now());
    if (wait <= Clock::duration::zero()) break;
    channel->WaitForStateChange(state, std::chrono::system_clock::now() + wait);
  }
  Discard(channel);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(patience);
  return absl::UnavailableError(absl::StrCat("no connection within ", milliseconds.count(), " ms"));
}

void GrpcChannel::Discard(const std::shared_ptr<grpc::Channel>& channel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (channel_ == channel) channel_.reset();
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> GrpcChannel::Get() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!channel_) {
    auto credentials = MakeChannelCredentials(options_);
    if (!credentials.ok()) return credentials.status();
    channel_ = grpc::CreateCustomChannel(options_.address, *credentials, Arguments(options_));
  }
  return channel_;
}

}  // namespace stowage
