#include "server/catalogue/environment_file.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "solvers/zoo/device_kinds.h"

namespace stowage {
namespace {

using Fields = std::map<std::string, std::string>;

constexpr const char* kNames[] = {"kind",          "tenant",      "device",          "framework",
                                  "math_settings", "granularity", "bandwidth_class", "duplex"};

absl::Status Error(const std::string& what) { return absl::InvalidArgumentError(what); }

bool IsKnown(const std::string& name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// Up to the next blank, or within quotes; nothing where those do not end, or no blank follows them.
std::optional<std::string> TakeValue(const std::string& line, size_t* at) {
  const bool quoted = *at < line.size() && line[*at] == '"';
  const size_t start = quoted ? *at + 1 : *at;
  size_t end = line.find(quoted ? '"' : ' ', start);
  if (quoted && end == std::string::npos) return std::nullopt;
  end = std::min(end, line.size());
  *at = quoted ? end + 1 : end;
  if (*at < line.size() && line[*at] != ' ') return std::nullopt;
  return line.substr(start, end - start);
}

absl::StatusOr<Fields> ReadFields(const std::string& line) {
  Fields fields;
  for (size_t at = 0; at < line.size();) {
    if (line[at] == ' ') {
      ++at;
      continue;
    }
    const size_t equals = line.find('=', at);
    if (equals == std::string::npos) {
      return Error(absl::StrCat("'", line.substr(at), "' is no NAME=VALUE"));
    }
    const std::string name = line.substr(at, equals - at);
    at = equals + 1;
    const std::optional<std::string> value = TakeValue(line, &at);
    if (!IsKnown(name)) return Error(absl::StrCat("there is no '", name, "'"));
    if (!value) return Error(absl::StrCat("the value of ", name, " has no end"));
    if (!fields.emplace(name, *value).second) return Error(absl::StrCat(name, " comes twice"));
  }
  return fields;
}

template <class Number>
absl::Status ReadNumber(const Fields& fields, const std::string& name, Number* value) {
  const auto field = fields.find(name);
  if (field == fields.end() || absl::SimpleAtoi(field->second, value)) return absl::OkStatus();
  return Error(absl::StrCat(name, " = '", field->second, "' must be a number"));
}

absl::Status ReadDuplex(const Fields& fields, Duplex* duplex) {
  const auto field = fields.find("duplex");
  if (field == fields.end()) return absl::OkStatus();
  if (field->second != "half" && field->second != "full") {
    return Error(absl::StrCat("duplex = '", field->second, "' must be half or full"));
  }
  *duplex = field->second == "half" ? Duplex::kHalf : Duplex::kFull;
  return absl::OkStatus();
}

std::string TextOf(const Fields& fields, const std::string& name) {
  const auto field = fields.find(name);
  return field == fields.end() ? "" : field->second;
}

absl::StatusOr<Device> ReadDevice(const Fields& fields) {
  Device device;
  device.model = TextOf(fields, "device");
  device.framework = TextOf(fields, "framework");
  device.math_settings = TextOf(fields, "math_settings");
  int64_t granularity = 1;
  absl::Status status = ReadNumber(fields, "granularity", &granularity);
  if (status.ok()) status = ReadNumber(fields, "bandwidth_class", &device.bandwidth_class);
  if (status.ok()) status = ReadDuplex(fields, &device.duplex);
  device.allocation_granularity = Bytes(granularity);
  if (status.ok()) status = ValidateDevice(device);
  if (!status.ok()) return status;
  return device;
}

absl::StatusOr<CatalogueEnvironment> ReadEnvironment(const std::string& line) {
  const absl::StatusOr<Fields> fields = ReadFields(line);
  if (!fields.ok()) return fields.status();
  for (const char* needed : {"kind", "device"}) {
    if (TextOf(*fields, needed).empty()) return Error(absl::StrCat(needed, " is missing"));
  }
  const auto kind = FindDeviceKind(TextOf(*fields, "kind"));
  if (!kind.ok()) return kind.status();
  absl::StatusOr<Device> device = ReadDevice(*fields);
  if (!device.ok()) return device.status();
  return CatalogueEnvironment{kind->name, TextOf(*fields, "tenant"), *std::move(device)};
}

}  // namespace

absl::StatusOr<std::vector<CatalogueEnvironment>> ParseEnvironments(const std::string& text) {
  std::vector<CatalogueEnvironment> environments;
  int number = 0;
  for (const std::string& untrimmed : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    ++number;
    const std::string line(absl::StripAsciiWhitespace(untrimmed));
    if (line.empty() || line[0] == '#') continue;
    absl::StatusOr<CatalogueEnvironment> environment = ReadEnvironment(line);
    if (!environment.ok()) {
      return Error(absl::StrCat("line ", number, ": ", environment.status().message()));
    }
    environments.push_back(*std::move(environment));
  }
  return environments;
}

}  // namespace stowage
