#include "server/entries/solver_version.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"

namespace stowage {
namespace {

struct Version {
  std::vector<uint64_t> numbers;  // without zeros at the end
  std::string rest;
};

bool IsDigit(const std::string& text, size_t at) {
  return at < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[at]));
}

Version Parse(const std::string& text) {
  Version version;
  size_t at = 0;
  while (IsDigit(text, at)) {
    size_t end = at;
    while (IsDigit(text, end)) ++end;
    uint64_t number = 0;
    if (!absl::SimpleAtoi(text.substr(at, end - at), &number)) break;
    version.numbers.push_back(number);
    at = end;
    if (at >= text.size() || text[at] != '.' || !IsDigit(text, at + 1)) break;
    ++at;
  }
  version.rest = text.substr(at);
  while (!version.numbers.empty() && version.numbers.back() == 0) version.numbers.pop_back();
  return version;
}

}  // namespace

bool IsNewerVersion(const std::string& a, const std::string& b) {
  const Version x = Parse(a), y = Parse(b);
  if (x.numbers != y.numbers) return y.numbers < x.numbers;
  if (x.rest.empty() != y.rest.empty()) return x.rest.empty();
  return x.rest > y.rest;
}

}  // namespace stowage
