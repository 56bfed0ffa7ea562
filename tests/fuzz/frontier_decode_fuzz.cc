// Arbitrary bytes as an encoded frontier: refused, or an object that encodes to the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "solvers/plan/frontier.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using stowage::testing::Require;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<stowage::Frontier> frontier = stowage::Frontier::Decode(bytes);
  if (!frontier.ok()) {
    Require(absl::IsInvalidArgument(frontier.status()), "bad bytes are bad arguments");
    return 0;
  }
  Require(frontier->Encode() == bytes, "a frontier has one encoding");
  for (const stowage::Frontier::Point& point : frontier->points()) {
    Require(frontier->PlanAt(point.peak).ok(), "every point decodes");
  }
  return 0;
}
