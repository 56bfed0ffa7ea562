// Reads JSON, all of it, for the tests of what writes some.
#ifndef STOWAGE_TESTS_SOLVERS_BASE_JSON_READER_H_
#define STOWAGE_TESTS_SOLVERS_BASE_JSON_READER_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace stowage::testing {

struct Json {
  enum class Kind { kNull, kFlag, kNumber, kText, kList, kObject };
  Kind kind = Kind::kNull;
  bool flag = false;
  double number = 0;
  std::string text;  // UTF-8; of a number, as it is written
  std::vector<Json> list;
  std::map<std::string, Json> object;

  // Null where there is no such field.
  const Json& operator[](const std::string& field) const;
  bool has(const std::string& field) const { return object.count(field) > 0; }
};

// Nothing unless the text is one JSON value (RFC 8259), with no field given twice.
std::optional<Json> ReadJson(const std::string& text);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_BASE_JSON_READER_H_
