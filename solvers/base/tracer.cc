#include "solvers/base/tracer.h"

#include <chrono>
#include <new>

namespace stowage {
namespace {

int64_t UnixNow() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Span::Span(Tracer* tracer, const TraceContext& parent, const char* name, SpanKind kind)
    : tracer_(tracer) {
  if (tracer == nullptr || !parent.sampled) return;
  record_ = std::make_unique<SpanRecord>();
  record_->context = parent;
  record_->context.span_id = NewSpanId();
  record_->parent = parent.span_id;
  record_->name = name;
  record_->kind = kind;
  record_->start_unix_ns = UnixNow();
}

Span::Span(Span&& other) noexcept = default;

Span& Span::operator=(Span&& other) noexcept {
  End();
  tracer_ = other.tracer_;
  record_ = std::move(other.record_);
  return *this;
}

Span Span::Root(Tracer* tracer, const char* name, SpanKind kind) {
  if (tracer == nullptr) return Span();
  return Span(tracer, TraceContext{NewTraceId(), SpanId{}, true}, name, kind);
}

void Span::Add(const char* key, const char* value) {
  if (record_) record_->attributes.emplace_back(key, std::string(value));
}

void Span::Add(const char* key, const std::string& value) {
  if (record_) record_->attributes.emplace_back(key, value);
}

void Span::Add(const char* key, int64_t value) {
  if (record_) record_->attributes.emplace_back(key, value);
}

void Span::Link(const TraceContext& other) {
  if (record_) record_->links.push_back(other);
}

void Span::Fail(const std::string& error) {
  if (!record_) return;
  record_->failed = true;
  record_->error = error;
}

void Span::End() {
  if (!record_) return;
  record_->end_unix_ns = UnixNow();
  const std::unique_ptr<SpanRecord> record = std::move(record_);
  try {
    tracer_->Ended(std::move(*record));
  } catch (const std::bad_alloc&) {
    // What it is about goes on without it.
  }
}

}  // namespace stowage
