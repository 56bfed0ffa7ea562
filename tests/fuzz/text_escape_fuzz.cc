// Arbitrary text as a name in a report, an answer or a log: plain ASCII that ends no string, script or element, and that reads as
// the same text, but for bytes that are no UTF-8.
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "solvers/base/text_escape.h"
#include "tests/fuzz/require.h"
#include "tests/solvers/base/json_reader.h"

namespace stowage {
namespace {

using testing::Json;
using testing::Require;

void CheckPlain(const std::string& escaped, const char* never, const std::string& text) {
  for (const char c : escaped) Require(c >= ' ' && c <= '~', "what is written is ASCII", text);
  Require(escaped.find_first_of(never) == std::string::npos, "nothing ends what it is in", text);
}

// Every & begins a number.
void CheckEntities(const std::string& html, const std::string& text) {
  for (size_t at = html.find('&'); at != std::string::npos; at = html.find('&', at + 1)) {
    size_t end = at + 2;
    while (end < html.size() && std::isdigit(static_cast<unsigned char>(html[end])) != 0) ++end;
    const bool number = html.compare(at, 2, "&#") == 0 && end > at + 2;
    Require(number && end < html.size() && html[end] == ';', "an entity is a number", text);
  }
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string json = JsonString(text);
  CheckPlain(json, "<>&", text);
  const std::optional<Json> read = testing::ReadJson(json);
  Require(read.has_value() && read->kind == Json::Kind::kText, "it is a JSON string", text);
  Require(JsonString(read->text) == json, "what it says is said the same way", text);
  const bool replaced = json.find("\\ufffd") != std::string::npos;
  Require(replaced || read->text == text, "it says the text", text);
  const std::string html = HtmlEscaped(text);
  CheckPlain(html, "<>'\"", text);
  CheckEntities(html, text);
  return 0;
}
