// Which trace a call belongs to, and the header that says so from process to process: `traceparent` of
// W3C Trace Context (https://www.w3.org/TR/trace-context/), version 00.
#ifndef STOWAGE_SOLVERS_BASE_TRACE_CONTEXT_H_
#define STOWAGE_SOLVERS_BASE_TRACE_CONTEXT_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stowage {

inline constexpr char kTraceparentHeader[] = "traceparent";

using TraceId = std::array<uint8_t, 16>;
using SpanId = std::array<uint8_t, 8>;

// One span of a trace, for those below it.
struct TraceContext {
  TraceId trace_id{};
  SpanId span_id{};
  bool sampled = false;  // whether spans below it are recorded
};

bool operator==(const TraceContext& a, const TraceContext& b);

// Nothing where W3C says that the header is to be ignored: ids of zeros, capitals, version ff, a text of
// version 00 that is longer. Of a later version what version 00 has is read.
std::optional<TraceContext> ParseTraceparent(std::string_view text);

std::string FormatTraceparent(const TraceContext& context);

// 32 digits.
std::string ToHex(const TraceId& id);

// New ones, never of zeros alone. Thread-safe.
TraceId NewTraceId();
SpanId NewSpanId();

// Whether a trace that begins here is one of that share of all, in [0, 1]: by its id, so that all who
// draw by the same share agree.
bool IsSampled(const TraceId& id, double share);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_TRACE_CONTEXT_H_
