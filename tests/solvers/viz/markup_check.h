// What tests of pictures ask of their text.
#ifndef STOWAGE_TESTS_SOLVERS_VIZ_MARKUP_CHECK_H_
#define STOWAGE_TESTS_SOLVERS_VIZ_MARKUP_CHECK_H_

#include <string>

namespace stowage::testing {

// Of a regular expression.
int CountMatches(const std::string& text, const std::string& pattern);

// Every element is closed in the order it was opened.
bool IsWellFormed(const std::string& xml);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_VIZ_MARKUP_CHECK_H_
