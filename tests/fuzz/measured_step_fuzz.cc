// Arbitrary text as a measured step: refused, with a line, or a step whose text it is.
#include <cstddef>
#include <cstdint>
#include <string>

#include "solvers/model/field_error.h"
#include "solvers/schedule/measured_step.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using stowage::testing::Require;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<stowage::MeasuredStep> step = stowage::ParseMeasuredStep(text);
  if (step.ok()) {
    Require(stowage::MeasuredStepText(*step) == text, "a step has one text", text);
  } else {
    Require(stowage::GetFieldViolation(step.status()).has_value(), "what is wrong is named", text);
  }
  return 0;
}
