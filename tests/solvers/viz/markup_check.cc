#include "tests/solvers/viz/markup_check.h"

#include <iterator>
#include <regex>
#include <vector>

namespace stowage::testing {

int CountMatches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  return static_cast<int>(
      std::distance(std::sregex_iterator(text.begin(), text.end(), regex), std::sregex_iterator()));
}

bool IsWellFormed(const std::string& xml) {
  const std::regex tag("<(/?)([a-z]+)[^<>]*?(/?)>");
  std::vector<std::string> open;
  for (std::sregex_iterator i(xml.begin(), xml.end(), tag), end; i != end; ++i) {
    if ((*i)[3].length() > 0) continue;
    if ((*i)[1].length() == 0) {
      open.push_back((*i)[2]);
    } else if (open.empty() || open.back() != (*i)[2]) {
      return false;
    } else {
      open.pop_back();
    }
  }
  return open.empty();
}

}  // namespace stowage::testing
