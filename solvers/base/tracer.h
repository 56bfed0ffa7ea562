// Spans: what one call did, and when, as part of a trace (trace_context.h).
//
// Off is a null Tracer: a span of none reads no clock, allocates nothing and does nothing. A span is of
// one thread at a time; tracers are thread-safe. Nothing here fails: where memory is out a span is lost.
#ifndef STOWAGE_SOLVERS_BASE_TRACER_H_
#define STOWAGE_SOLVERS_BASE_TRACER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "solvers/base/trace_context.h"

namespace stowage {

enum class SpanKind { kInternal, kServer, kClient };

struct SpanRecord {
  TraceContext context;
  SpanId parent{};  // zeros: it begins the trace
  std::string name;
  SpanKind kind = SpanKind::kInternal;
  int64_t start_unix_ns = 0;
  int64_t end_unix_ns = 0;
  std::vector<std::pair<const char*, std::variant<std::string, int64_t>>> attributes;
  std::vector<TraceContext> links;  // spans of other traces that it has to do with
  bool failed = false;
  std::string error;  // of one that has failed
};

// Where spans go.
class Tracer {
 public:
  virtual ~Tracer() = default;
  // Of a span that has ended; never blocks.
  virtual void Ended(SpanRecord span) = 0;
};

// From its making to End, or its destruction.
class Span {
 public:
  Span() = default;  // of no trace
  Span(Tracer* tracer, const TraceContext& parent, const char* name, SpanKind kind);
  Span(Span&& other) noexcept;
  Span& operator=(Span&& other) noexcept;
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;
  ~Span() { End(); }

  // A span that begins a trace, with which all is sampled; of no trace without a tracer.
  static Span Root(Tracer* tracer, const char* name, SpanKind kind);

  bool recording() const { return record_ != nullptr; }
  // Of one that is recording: for those below it.
  const TraceContext& context() const { return record_->context; }

  // These do nothing where it is not recording; keys are literals.
  void Add(const char* key, const char* value);
  void Add(const char* key, const std::string& value);
  void Add(const char* key, int64_t value);
  // Of another trace, or of this one, but not above it.
  void Link(const TraceContext& other);
  void Fail(const std::string& error);
  void End();

 private:
  Tracer* tracer_ = nullptr;
  std::unique_ptr<SpanRecord> record_;
};

// The span of a call, for those who make spans below it. As it is made, it is of no trace.
struct TraceScope {
  Tracer* tracer = nullptr;
  TraceContext context;

  Span Start(const char* name) const {
    return tracer == nullptr ? Span() : Span(tracer, context, name, SpanKind::kInternal);
  }
  // For what is copied: null where it is of no trace.
  std::shared_ptr<Span> StartShared(const char* name) const {
    return tracer == nullptr ? nullptr : std::make_shared<Span>(Start(name));
  }
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_TRACER_H_
