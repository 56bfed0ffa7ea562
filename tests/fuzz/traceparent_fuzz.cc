// Arbitrary text as a traceparent: ignored, or ids that are written as they were read.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "solvers/base/trace_context.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using stowage::testing::Require;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::optional<stowage::TraceContext> read = stowage::ParseTraceparent(text);
  if (!read) return 0;
  Require(read->trace_id != stowage::TraceId{}, "a trace has an id", text);
  Require(read->span_id != stowage::SpanId{}, "a span has an id", text);
  const std::string written = stowage::FormatTraceparent(*read);
  constexpr size_t kVersion = 2;
  constexpr size_t kFlags = 52;
  Require(written.substr(kVersion, kFlags - kVersion) == text.substr(kVersion, kFlags - kVersion),
          "ids are written as they were read", text);
  const std::optional<stowage::TraceContext> again = stowage::ParseTraceparent(written);
  Require(again && *again == *read, "what is written is read", text);
  Require(size == written.size() || text.substr(0, kVersion) != "00", "version 00 has one length",
          text);
  return 0;
}
