// Arbitrary text as a budget: refused, or a budget that is valid.
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "solvers/model/budget.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  using testing::Require;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Budget> budget = ParseBudget(text);
  if (!budget.ok()) {
    Require(absl::IsInvalidArgument(budget.status()), "bad text is a bad argument");
    return 0;
  }
  Require(ValidateBudget(*budget).ok(), "what is read is valid", text);
  Require(!ToString(*budget).empty(), "there is a text for people", text);
  if (const Bytes* bytes = std::get_if<Bytes>(&*budget)) {
    const absl::StatusOr<Budget> again = ParseBudget(std::to_string(bytes->value()));
    Require(again.ok() && std::get<Bytes>(*again) == *bytes, "bytes are read exactly", text);
  }
  return 0;
}
