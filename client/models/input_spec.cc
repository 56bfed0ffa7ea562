#include "client/models/input_spec.h"

#include <ATen/Functions.h>
#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

struct NamedType {
  const char* name;
  at::ScalarType type;
};

constexpr std::array<NamedType, 6> kInputTypes = {{{"float32", at::kFloat},
                                                   {"float64", at::kDouble},
                                                   {"bfloat16", at::kBFloat16},
                                                   {"float16", at::kHalf},
                                                   {"int64", at::kLong},
                                                   {"int32", at::kInt}}};

std::string TypeName(at::ScalarType type) {
  for (const NamedType& known : kInputTypes) {
    if (known.type == type) return known.name;
  }
  return c10::toString(type);
}

absl::Status InputError(const std::string& text, const std::string& rule) {
  return FieldError("input", absl::StrCat("\"", text, "\""), rule);
}

absl::Status ParseSizes(const std::string& text, const std::string& sizes, InputSpec* input) {
  constexpr int64_t kMostElements = int64_t{1} << 40;
  int64_t elements = 1;
  for (const absl::string_view size : absl::StrSplit(sizes, 'x')) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(size, &value) || value < 1) {
      return InputError(text, "must be sizes >= 1 with x between, such as 8x3x224x224");
    }
    if (value > kMostElements / elements) {
      return InputError(text, "must have at most 2^40 elements");
    }
    elements *= value;
    input->sizes.push_back(value);
  }
  return absl::OkStatus();
}

// "bfloat16" or "int64<30522".
absl::Status ParseType(const std::string& text, const std::string& words, InputSpec* input) {
  const std::vector<std::string> parts = absl::StrSplit(words, absl::MaxSplits('<', 1));
  const auto* known = std::find_if(kInputTypes.begin(), kInputTypes.end(),
                                   [&](const NamedType& type) { return parts[0] == type.name; });
  if (known == kInputTypes.end()) {
    std::vector<std::string> names;
    for (const NamedType& type : kInputTypes) names.emplace_back(type.name);
    return InputError(text, absl::StrCat("its type must be one of ", absl::StrJoin(names, ", ")));
  }
  input->type = known->type;
  if (at::isFloatingType(input->type)) {
    return parts.size() == 1 ? absl::OkStatus()
                             : InputError(text, "only integers have a range (\"<\")");
  }
  if (parts.size() == 2 && absl::SimpleAtoi(parts[1], &input->below) && input->below >= 1 &&
      input->below <= int64_t{1} << 31) {
    return absl::OkStatus();
  }
  return InputError(text, absl::StrCat("integers need what they are below, 1 to 2^31, such as '",
                                       "8x128:", known->name, "<30522' for ids of tokens"));
}

absl::StatusOr<InputSpec> ParseInput(const std::string& text) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  InputSpec input;
  absl::Status status = ParseSizes(text, parts[0], &input);
  if (status.ok() && parts.size() == 2) status = ParseType(text, parts[1], &input);
  if (!status.ok()) return status;
  return input;
}

}  // namespace

absl::StatusOr<std::vector<InputSpec>> ParseInputs(const std::string& text) {
  std::vector<InputSpec> inputs;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    absl::StatusOr<InputSpec> input = ParseInput(std::string(part));
    if (!input.ok()) return input.status();
    inputs.push_back(*std::move(input));
  }
  return inputs;
}

at::Tensor DrawInput(const InputSpec& input) {
  if (input.below > 0) return at::randint(input.below, input.sizes, at::dtype(input.type));
  return at::randn(input.sizes).to(input.type);
}

std::string ToString(const TensorShape& shape) {
  const std::string sizes = shape.sizes.empty() ? "one" : absl::StrJoin(shape.sizes, "x");
  return absl::StrCat(sizes, " ", TypeName(shape.type));
}

}  // namespace stowage
