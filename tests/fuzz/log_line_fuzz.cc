// Arbitrary text as a value of a line of the log: one line of ASCII in which the value is a JSON
// string of the same bytes, and the next field follows.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/escaping.h"
#include "server/log/log_line.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

// The bytes of the JSON string that begins at `at`, which moves behind it. Bytes are logged as the
// characters of their numbers, U+0000 to U+00FF.
std::string TakeString(const std::string& line, size_t* at) {
  std::string bytes;
  Require(line.at((*at)++) == '"', "a string begins with a quote", line);
  while (line.at(*at) != '"') {
    char c = line[(*at)++];
    if (c == '\\') {
      c = line.at((*at)++);
      Require(c == '"' || c == '\\' || c == 'u', "an escape is one of JSON", line);
      if (c == 'u') {
        const std::string digits = line.substr(*at, 4);
        Require(digits.substr(0, 2) == "00", "a character is a byte", line);
        c = absl::HexStringToBytes(digits.substr(2)).at(0);
        *at += 4;
      }
    }
    bytes.push_back(c);
  }
  ++*at;
  return bytes;
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  const std::string value(reinterpret_cast<const char*>(data), size);
  const std::string line =
      LogLine(LogLevel::kInfo, "event").Add("value", value).Add("after", int64_t{7}).Text();
  Require(!line.empty() && line.find('\n') == line.size() - 1, "a line is one", line);
  for (const char c : line.substr(0, line.size() - 1)) {
    Require(c >= 0x20 && c < 0x7f, "a line is plain ASCII", line);
  }
  const std::string beginning = "\"level\":\"info\",\"event\":\"event\",\"value\":";
  size_t at = line.find(beginning);
  Require(at != std::string::npos, "the fields are in their order", line);
  at += beginning.size();
  Require(TakeString(line, &at) == value, "the value is in it", line);
  Require(line.substr(at) == ",\"after\":7}\n", "the next field follows", line);
  return 0;
}
