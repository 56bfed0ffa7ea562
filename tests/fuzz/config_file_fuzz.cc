// Arbitrary text as stowaged's configuration file, and as its command line, an argument each line:
// refused, naming the place, or flags that are printed as a file that sets them alike.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/reflection.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/config/config_checks.h"
#include "server/config/config_flags.h"
#include "server/config/config_sources.h"
#include "tests/fuzz/require.h"
#include "tests/fuzz/text_file.h"

namespace stowage {
namespace {

using testing::Require;

std::optional<std::string> NoEnvironment(const std::string&) { return std::nullopt; }

std::vector<std::string> Values() {
  std::vector<std::string> values;
  for (const std::string& flag : FlagNames()) {
    if (flag != "config") values.push_back(absl::FindCommandLineFlag(flag)->CurrentValue());
  }
  return values;
}

// Nothing, if it is refused.
std::optional<ConfigSources> ReadFile(const std::string& text) {
  const testing::TextFile file(text);
  const absl::StatusOr<ConfigSources> sources =
      ConfigSources::Apply({false, {{"config", file.path()}}}, NoEnvironment);
  if (sources.ok()) return *sources;
  Require(absl::IsInvalidArgument(sources.status()) &&
              absl::StartsWith(sources.status().message(), file.path()),
          "the error names the file", sources.status().ToString());
  return std::nullopt;
}

void CheckFile(const std::string& text) {
  const absl::FlagSaver saver;
  const std::optional<ConfigSources> sources = ReadFile(text);
  if (!sources) return;
  const absl::Status valid = CheckFlags(*sources);
  Require(valid.ok() || absl::IsInvalidArgument(valid), "bad values are bad arguments",
          valid.ToString());
  const std::vector<std::string> values = Values();
  const std::string printed = EffectiveConfig(*sources);
  const absl::FlagSaver defaults;
  Require(ReadFile(printed).has_value(), "what is printed is read", printed);
  Require(Values() == values, "what is printed says all", printed);
}

void CheckCommandLine(const std::string& text) {
  const absl::FlagSaver saver;
  const std::vector<std::string> arguments = absl::StrSplit(text, '\n');
  const absl::StatusOr<CommandLine> line = ReadCommandLine(arguments, FlagNames());
  if (!line.ok()) {
    Require(absl::IsInvalidArgument(line.status()), "bad arguments are", line.status().ToString());
    return;
  }
  Require(line->values.size() <= arguments.size(), "every value was given", text);
  for (const FlagValue& flag : line->values) {
    const absl::Status set = SetFlag(flag, "--" + flag.name);
    Require(set.ok() || absl::StartsWith(set.message(), "--" + flag.name + "="),
            "the error names the flag", set.ToString());
  }
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  stowage::CheckFile(text);
  stowage::CheckCommandLine(text);
  return 0;
}
