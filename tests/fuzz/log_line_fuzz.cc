// Arbitrary text as a value of a line of the log: one line of ASCII that is a JSON object, in which the value
// is what text_escape.h makes of it, and the next field follows.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "server/observe/log_line.h"
#include "solvers/base/text_escape.h"
#include "tests/fuzz/require.h"
#include "tests/solvers/base/json_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  using testing::Json;
  using testing::Require;
  const std::string value(reinterpret_cast<const char*>(data), size);
  const std::string line =
      LogLine(LogLevel::kInfo, "event").Add("value", value).Add("after", int64_t{7}).Text();
  Require(!line.empty() && line.find('\n') == line.size() - 1, "a line is one", line);
  for (const char c : line.substr(0, line.size() - 1)) {
    Require(c >= 0x20 && c < 0x7f, "a line is plain ASCII", line);
  }
  const std::optional<Json> object = testing::ReadJson(line);
  Require(object.has_value() && object->object.size() == 5, "a line is an object of its fields",
          line);
  Require(JsonString((*object)["value"].text) == JsonString(value), "the value is in it", line);
  Require((*object)["event"].text == "event" && (*object)["after"].number == 7,
          "other fields are as they were", line);
  return 0;
}
