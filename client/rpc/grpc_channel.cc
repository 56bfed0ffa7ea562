#include "client/rpc/grpc_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/rpc/error_hints.h"

namespace stowage {
namespace {

// The process that first used gRPC here. Its threads and locks do not exist in a child, whichever
// channel is used there.
std::atomic<pid_t> grpc_process{0};

bool InForkedChild() {
  pid_t expected = 0;
  const pid_t self = getpid();
  return !grpc_process.compare_exchange_strong(expected, self) && expected != self;
}

grpc::ChannelArguments Arguments(const GrpcOptions& options) {
  grpc::ChannelArguments arguments;
  const int64_t limit =
      std::min<int64_t>(options.message_limit.value(), std::numeric_limits<int>::max());
  arguments.SetMaxReceiveMessageSize(static_cast<int>(limit));
  // Connections shared between channels share their backoff too: see Discard.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // A peer that is gone without a word is noticed within seconds, not at the deadline of a call.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5000);
  // A planner is a neighbour; a proxy set for the way out of the cluster does not lead to it.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

}  // namespace

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
  if (options.cancel && options.cancel->cancelled()) return absl::CancelledError("cancelled");
  const Clock::time_point deadline =
      options.has_deadline() ? options.deadline : Clock::now() + options_.default_timeout;
  auto channel = Connect(deadline, options.cancel.get());
  if (!channel.ok()) return Explain(channel.status(), options_);
  context->set_deadline(std::chrono::system_clock::now() + (deadline - Clock::now()));
  return channel;
}

absl::Status GrpcChannel::Failed(const std::shared_ptr<grpc::Channel>& channel,
                                 const absl::Status& status) {
  if (absl::IsUnavailable(status)) Discard(channel);
  return Explain(status, options_);
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> GrpcChannel::Connect(Clock::time_point deadline,
                                                                    const CancelToken* cancel) {
  if (InForkedChild()) {
    return absl::FailedPreconditionError(
        "this process was forked from one that had used gRPC already: open connections after "
        "forking");
  }
  std::shared_ptr<grpc::Channel> channel = Get();
  const Clock::duration left = std::max(deadline - Clock::now(), Clock::duration::zero());
  const auto patience = std::min<Clock::duration>(options_.connect_timeout, left / 2);
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

std::shared_ptr<grpc::Channel> GrpcChannel::Get() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!channel_) {
    channel_ = grpc::CreateCustomChannel(options_.address, grpc::InsecureChannelCredentials(),
                                         Arguments(options_));
  }
  return channel_;
}

}  // namespace stowage
