// JSON as text, put together from values that are JSON already; `JsonString` (text_escape.h) makes one of text.
// Pure functions.
#ifndef STOWAGE_CLIENT_CLI_JSON_TEXT_H_
#define STOWAGE_CLIENT_CLI_JSON_TEXT_H_

#include <string>
#include <utility>
#include <vector>

#include "solvers/base/text_escape.h"

namespace stowage {

using JsonFields = std::vector<std::pair<std::string, std::string>>;

std::string JsonBool(bool value);
// A number that JSON can say; null for one that is none.
std::string JsonNumber(double value);
std::string JsonObject(const JsonFields& fields);
std::string JsonArray(const std::vector<std::string>& values);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_JSON_TEXT_H_
