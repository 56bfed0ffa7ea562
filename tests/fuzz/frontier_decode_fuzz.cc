// Arbitrary bytes as an encoded frontier: refused, or an object that encodes to the same bytes.
#include <cstddef>
#include <cstdint>
#include <string>

#include "solvers/schedule/frontier.h"
#include "solvers/schedule/plan.h"
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
  // One of them: each may stand for millions of instructions.
  if (!frontier->points().empty()) {
    Require(frontier->PlanAt(frontier->points().back().peak).status == stowage::PlanStatus::kFound,
            "the last point is a plan");
  }
  return 0;
}
