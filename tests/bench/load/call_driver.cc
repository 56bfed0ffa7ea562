#include "tests/bench/load/call_driver.h"

#include <algorithm>
#include <utility>

namespace stowage {

struct CallDriver::Call {
  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
  Clock::time_point start;
  Done done;
};

CallDriver::CallDriver(const std::string& address, int connections, std::string token)
    : token_(std::move(token)) {
  for (int i = 0; i < connections; ++i) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetMaxReceiveMessageSize(-1);
    stubs_.push_back(std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments)));
  }
}

CallDriver::~CallDriver() {
  for (Call* call : calls_) call->context.TryCancel();
  Finish();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
}

CallDriver::Call* CallDriver::Begin(const std::string& method, const std::string& request,
                                    std::chrono::milliseconds timeout, Done done) {
  auto* call = new Call;
  call->done = std::move(done);
  call->context.set_deadline(std::chrono::system_clock::now() + timeout);
  if (!token_.empty()) call->context.AddMetadata("authorization", "Bearer " + token_);
  call->start = Clock::now();
  grpc::GenericStub* stub = stubs_[next_stub_++ % stubs_.size()].get();
  call->reader = stub->PrepareUnaryCall(&call->context, method, ToByteBuffer(request), &queue_);
  call->reader->StartCall();
  call->reader->Finish(&call->reply, &call->status, call);
  ++open_;
  calls_.push_back(call);
  return call;
}

void CallDriver::Start(const std::string& method, const std::string& request,
                       std::chrono::milliseconds timeout, Done done) {
  Begin(method, request, timeout, std::move(done));
}

void CallDriver::StartAndCancel(const std::string& method, const std::string& request,
                                std::chrono::milliseconds patience, Done done) {
  Call* call = Begin(method, request, std::chrono::seconds(60), std::move(done));
  to_cancel_.emplace_back(Clock::now() + patience, call);
}

void CallDriver::CancelDue() {
  const Clock::time_point now = Clock::now();
  for (const auto& [when, call] : to_cancel_) {
    if (when <= now) call->context.TryCancel();
  }
  to_cancel_.erase(std::remove_if(to_cancel_.begin(), to_cancel_.end(),
                                  [now](const auto& due) { return due.first <= now; }),
                   to_cancel_.end());
}

bool CallDriver::Poll(std::chrono::milliseconds wait) {
  if (!to_cancel_.empty()) CancelDue();
  void* tag = nullptr;
  bool ok = false;
  const auto until = std::chrono::system_clock::now() + wait;
  if (queue_.AsyncNext(&tag, &ok, until) != grpc::CompletionQueue::GOT_EVENT) return false;
  std::unique_ptr<Call> call(static_cast<Call*>(tag));
  --open_;
  calls_.erase(std::find(calls_.begin(), calls_.end(), call.get()));
  to_cancel_.erase(std::remove_if(to_cancel_.begin(), to_cancel_.end(),
                                  [&call](const auto& due) { return due.second == call.get(); }),
                   to_cancel_.end());
  CallResult result;
  result.seconds = std::chrono::duration<double>(Clock::now() - call->start).count();
  result.status = call->status;
  if (call->status.ok()) result.reply = ToString(call->reply);
  call->done(result);
  return true;
}

void CallDriver::Finish() {
  while (open_ > 0) Poll(std::chrono::milliseconds(100));
}

grpc::ByteBuffer ToByteBuffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

std::string ToString(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return bytes;
}

double Quantile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  const size_t index = std::min(values.size() - 1, static_cast<size_t>(p * values.size()));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index),
                   values.end());
  return values[index];
}

}  // namespace stowage
