#include "proto/otlp/otlp_exporter.h"

#include <grpcpp/client_context.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"

namespace stowage {
namespace {

namespace otlp = opentelemetry::proto;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kLastWords{1};

template <class Id>
std::string BytesOf(const Id& id) {
  return std::string(id.begin(), id.end());
}

otlp::trace::v1::Span::SpanKind ToProto(SpanKind kind) {
  switch (kind) {
    case SpanKind::kInternal:
      return otlp::trace::v1::Span::SPAN_KIND_INTERNAL;
    case SpanKind::kServer:
      return otlp::trace::v1::Span::SPAN_KIND_SERVER;
    case SpanKind::kClient:
      return otlp::trace::v1::Span::SPAN_KIND_CLIENT;
  }
  return otlp::trace::v1::Span::SPAN_KIND_UNSPECIFIED;
}

void Write(const SpanRecord& record, otlp::trace::v1::Span* span) {
  span->set_trace_id(BytesOf(record.context.trace_id));
  span->set_span_id(BytesOf(record.context.span_id));
  if (record.parent != SpanId{}) span->set_parent_span_id(BytesOf(record.parent));
  span->set_name(record.name);
  span->set_kind(ToProto(record.kind));
  span->set_start_time_unix_nano(static_cast<uint64_t>(record.start_unix_ns));
  span->set_end_time_unix_nano(static_cast<uint64_t>(record.end_unix_ns));
  for (const auto& [key, value] : record.attributes) {
    otlp::common::v1::KeyValue* attribute = span->add_attributes();
    attribute->set_key(key);
    if (const auto* number = std::get_if<int64_t>(&value)) {
      attribute->mutable_value()->set_int_value(*number);
    } else {
      attribute->mutable_value()->set_string_value(std::get<std::string>(value));
    }
  }
  for (const TraceContext& other : record.links) {
    otlp::trace::v1::Span::Link* link = span->add_links();
    link->set_trace_id(BytesOf(other.trace_id));
    link->set_span_id(BytesOf(other.span_id));
  }
  if (!record.failed) return;
  span->mutable_status()->set_code(otlp::trace::v1::Status::STATUS_CODE_ERROR);
  span->mutable_status()->set_message(record.error);
}

void Add(const char* key, const std::string& value, otlp::resource::v1::Resource* resource) {
  if (value.empty()) return;
  otlp::common::v1::KeyValue* attribute = resource->add_attributes();
  attribute->set_key(key);
  attribute->mutable_value()->set_string_value(value);
}

grpc::ChannelArguments Arguments() {
  grpc::ChannelArguments arguments;
  // A collector that is back is used again within seconds, and it is a neighbour.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

std::shared_ptr<grpc::ChannelCredentials> Credentials(const OtlpOptions& options, bool tls) {
  if (!tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions trust;
  trust.pem_root_certs = options.root_certificates;
  return grpc::SslCredentials(trust);
}

std::shared_ptr<grpc::Channel> ChannelTo(const OtlpOptions& options) {
  const OtlpEndpoint endpoint = ParseOtlpEndpoint(options.endpoint);
  return grpc::CreateCustomChannel(endpoint.target, Credentials(options, endpoint.tls),
                                   Arguments());
}

}  // namespace

OtlpEndpoint ParseOtlpEndpoint(const std::string& endpoint) {
  if (absl::StartsWith(endpoint, "unix:")) return {endpoint, false};
  absl::string_view target = endpoint;
  const bool tls = absl::ConsumePrefix(&target, "https://");
  if (!tls) absl::ConsumePrefix(&target, "http://");
  return {std::string(target.substr(0, target.find('/'))), tls};
}

// One message after another, by the exporter's thread alone.
class OtlpExporter::Sender {
 public:
  explicit Sender(const OtlpOptions& options)
      : stub_(otlp::collector::trace::v1::TraceService::NewStub(ChannelTo(options))) {
    Add("service.name", options.service_name, &resource_);
    Add("service.version", options.service_version, &resource_);
  }

  // How many of the spans, 0 to all, the collector has not taken.
  size_t Send(const std::vector<SpanRecord>& spans, Clock::duration timeout) {
    try {
      return TrySend(spans, timeout);
    } catch (const std::bad_alloc&) {
      return spans.size();
    }
  }

 private:
  size_t TrySend(const std::vector<SpanRecord>& spans, Clock::duration timeout) {
    otlp::collector::trace::v1::ExportTraceServiceRequest request;
    otlp::trace::v1::ResourceSpans* of_resource = request.add_resource_spans();
    *of_resource->mutable_resource() = resource_;
    otlp::trace::v1::ScopeSpans* scope = of_resource->add_scope_spans();
    scope->mutable_scope()->set_name("stowage");
    for (const SpanRecord& record : spans) Write(record, scope->add_spans());
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    otlp::collector::trace::v1::ExportTraceServiceResponse response;
    if (!stub_->Export(&context, request, &response).ok()) return spans.size();
    const int64_t rejected = response.partial_success().rejected_spans();
    return std::min(static_cast<size_t>(std::max<int64_t>(rejected, 0)), spans.size());
  }

  const std::unique_ptr<otlp::collector::trace::v1::TraceService::Stub> stub_;
  otlp::resource::v1::Resource resource_;
};

OtlpExporter::OtlpExporter(OtlpOptions options)
    : options_(std::move(options)),
      sender_(std::make_unique<Sender>(options_)),
      thread_([this] { Work(); }) {}

OtlpExporter::~OtlpExporter() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    end_ = Clock::now() + kLastWords;
  }
  wake_.notify_one();
  thread_.join();
}

void OtlpExporter::Ended(SpanRecord span) {
  std::unique_lock<std::mutex> lock(mutex_);
  const bool fits = !stopped_ && queue_.size() < options_.queue_limit;
  if (fits) queue_.push_back(std::move(span));
  const bool wake = queue_.size() == 1 || queue_.size() == options_.batch_limit;
  lock.unlock();
  if (!fits) return Drop(1);
  if (wake) wake_.notify_one();
}

void OtlpExporter::Drop(size_t spans) {
  if (spans == 0) return;
  dropped_ += static_cast<int64_t>(spans);
  if (options_.dropped) options_.dropped(static_cast<int64_t>(spans));
}

std::vector<SpanRecord> OtlpExporter::TakeBatchLocked() {
  if (queue_.size() <= options_.batch_limit) return std::exchange(queue_, {});
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(options_.batch_limit);
  std::vector<SpanRecord> batch(std::make_move_iterator(queue_.begin()),
                                std::make_move_iterator(end));
  queue_.erase(queue_.begin(), end);
  return batch;
}

void OtlpExporter::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
    if (queue_.empty()) return;
    wake_.wait_for(lock, options_.gather,
                   [this] { return stopped_ || queue_.size() >= options_.batch_limit; });
    const std::vector<SpanRecord> batch = TakeBatchLocked();
    Clock::duration timeout = options_.timeout;
    if (stopped_) timeout = std::min(timeout, end_ - Clock::now());
    lock.unlock();
    const bool late = timeout <= Clock::duration::zero();
    Drop(late ? batch.size() : sender_->Send(batch, timeout));
    lock.lock();
  }
}

}  // namespace stowage
