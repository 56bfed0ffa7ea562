#include "client/cli/json_text.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace stowage {

std::string JsonBool(bool value) { return value ? "true" : "false"; }

std::string JsonNumber(double value) {
  return std::isfinite(value) ? absl::StrFormat("%.6g", value) : "null";
}

std::string JsonObject(const JsonFields& fields) {
  const auto append = [](std::string* out, const auto& field) {
    absl::StrAppend(out, JsonString(field.first), ": ", field.second);
  };
  return absl::StrCat("{", absl::StrJoin(fields, ", ", append), "}");
}

std::string JsonArray(const std::vector<std::string>& values) {
  return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
}

}  // namespace stowage
