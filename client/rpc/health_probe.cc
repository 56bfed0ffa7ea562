#include "client/rpc/health_probe.h"

#include <google/protobuf/wrappers.pb.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <future>

#include "absl/strings/str_cat.h"
#include "client/rpc/grpc_channel.h"
#include "proto/codec/grpc_status.h"

namespace stowage {
namespace {

// The messages of the health service have one field each, and so the bytes of these.
using Request = google::protobuf::StringValue;  // service
using Answer = google::protobuf::Int32Value;    // status
using Stub = grpc::TemplatedGenericStub<Request, Answer>;

constexpr char kMethod[] = "/grpc.health.v1.Health/Check";
constexpr int kServing = 1;

}  // namespace

absl::Status ProbeHealth(const GrpcOptions& server, const std::string& service,
                         std::chrono::nanoseconds patience) {
  GrpcChannel channel(server);
  Request request;
  request.set_value(service);
  grpc::ClientContext context;
  const auto connected = channel.Begin(
      static_cast<int64_t>(request.ByteSizeLong()),
      CallOptions::Within(std::chrono::duration_cast<CallOptions::Clock::duration>(patience)),
      &context);
  if (!connected.ok()) return connected.status();
  Answer answer;
  std::promise<grpc::Status> done;
  Stub(*connected)
      .UnaryCall(&context, kMethod, grpc::StubOptions(), &request, &answer,
                 [&done](const grpc::Status& status) { done.set_value(status); });
  const grpc::Status status = done.get_future().get();
  if (!status.ok()) return channel.Failed(*connected, FromGrpcStatus(status), /*cancel=*/nullptr);
  if (answer.value() == kServing) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      channel.name(), ": ", service.empty() ? "the server" : service, " is not serving"));
}

}  // namespace stowage
