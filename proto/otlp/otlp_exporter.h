// Spans to a collector of OpenTelemetry: OTLP over gRPC.
//
// Calls never wait for the collector: spans go into a queue, and a thread of the exporter's own sends
// them. What does not fit the queue, and what a collector that is away or slow does not take, is
// dropped and counted. Thread-safe. Errors are counted, not told.
#ifndef STOWAGE_PROTO_OTLP_OTLP_EXPORTER_H_
#define STOWAGE_PROTO_OTLP_OTLP_EXPORTER_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "solvers/base/tracer.h"

namespace stowage {

struct OtlpOptions {
  std::string endpoint;  // as ParseOtlpEndpoint takes it
  // PEM, of the authorities of a collector's certificate; empty: those that gRPC knows. With TLS alone.
  std::string root_certificates;
  std::string service_name;     // of whose spans they are
  std::string service_version;  // may be empty
  size_t queue_limit = 8192;    // >= 1; spans that wait
  size_t batch_limit = 512;     // >= 1; spans of one message
  // How long spans gather before they are sent, unless a batch is full.
  std::chrono::milliseconds gather{1000};
  std::chrono::milliseconds timeout{2000};  // of one message
  // Told how many spans are dropped, on any thread; cheap. May be empty.
  std::function<void(int64_t spans)> dropped;
};

struct OtlpEndpoint {
  std::string target;  // what gRPC connects to; empty: there is none
  bool tls = false;
};

// As OTEL_EXPORTER_OTLP_ENDPOINT says it: HOST:PORT, http://HOST:PORT or unix:PATH without TLS, https://HOST:PORT
// with it. What follows the port of a URL is left out.
OtlpEndpoint ParseOtlpEndpoint(const std::string& endpoint);

class OtlpExporter final : public Tracer {
 public:
  explicit OtlpExporter(OtlpOptions options);
  // Sends what waits, for at most a second.
  ~OtlpExporter() override;

  void Ended(SpanRecord span) override;

  int64_t dropped() const { return dropped_; }

 private:
  class Sender;

  void Drop(size_t spans);
  std::vector<SpanRecord> TakeBatchLocked();
  void Work();

  const OtlpOptions options_;
  const std::unique_ptr<Sender> sender_;
  std::atomic<int64_t> dropped_{0};
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<SpanRecord> queue_;
  bool stopped_ = false;
  std::chrono::steady_clock::time_point end_;  // once it has stopped: of the last message
  std::thread thread_;                         // last: uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_PROTO_OTLP_OTLP_EXPORTER_H_
