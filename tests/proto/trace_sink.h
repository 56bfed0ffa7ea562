// A collector of OpenTelemetry on a unix socket, that a test reads.
#ifndef STOWAGE_TESTS_PROTO_TRACE_SINK_H_
#define STOWAGE_TESTS_PROTO_TRACE_SINK_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"

namespace stowage::testing {

// A socket that nobody listens on.
inline std::string NewSinkAddress() {
  static std::atomic<int> next{0};
  return std::string("unix:/tmp/stowage_sink_") + std::to_string(getpid()) + "_" +
         std::to_string(next++);
}

class TraceSink final : public opentelemetry::proto::collector::trace::v1::TraceService::Service {
 public:
  using Span = opentelemetry::proto::trace::v1::Span;
  using Request = opentelemetry::proto::collector::trace::v1::ExportTraceServiceRequest;
  using Response = opentelemetry::proto::collector::trace::v1::ExportTraceServiceResponse;

  // `held`: it answers nobody until Release.
  explicit TraceSink(bool held = false) : address_(NewSinkAddress()), held_(held) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  // With TLS, on a port of this machine.
  explicit TraceSink(const std::shared_ptr<grpc::ServerCredentials>& credentials) : held_(false) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    address_ = "127.0.0.1:" + std::to_string(port);
  }
  ~TraceSink() override {
    Release();
    server_->Shutdown();
  }

  grpc::Status Export(grpc::ServerContext*, const Request* request, Response*) override {
    std::unique_lock<std::mutex> lock(mutex_);
    ++messages_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    for (const auto& of_resource : request->resource_spans()) {
      for (const auto& attribute : of_resource.resource().attributes()) {
        if (attribute.key() == "service.name") service_ = attribute.value().string_value();
      }
      for (const auto& scope : of_resource.scope_spans()) {
        spans_.insert(spans_.end(), scope.spans().begin(), scope.spans().end());
      }
    }
    changed_.notify_all();
    return grpc::Status::OK;
  }

  void Release() {
    std::lock_guard<std::mutex> lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

  const std::string& address() const { return address_; }
  // False after a minute.
  bool WaitForSpans(size_t count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return spans_.size() >= count; });
  }
  bool WaitFor(const std::string& name) {
    const auto has = [&] {
      return std::any_of(spans_.begin(), spans_.end(),
                         [&](const Span& span) { return span.name() == name; });
    };
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, has);
  }
  bool WaitForMessages(int count) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return messages_ >= count; });
  }
  std::vector<Span> spans() {
    std::lock_guard<std::mutex> lock(mutex_);
    return spans_;
  }
  std::string service() {
    std::lock_guard<std::mutex> lock(mutex_);
    return service_;
  }
  int messages() {
    std::lock_guard<std::mutex> lock(mutex_);
    return messages_;
  }

 private:
  static constexpr std::chrono::seconds kPatience{60};

  std::string address_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_;
  int messages_ = 0;
  std::string service_;
  std::vector<Span> spans_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_PROTO_TRACE_SINK_H_
