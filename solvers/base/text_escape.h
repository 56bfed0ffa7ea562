// Names that people gave, inside JSON, scripts and HTML: what comes out is one line of plain ASCII, whatever
// went in (but see JsonStringUnpaired), and ends no string, script or element, and does nothing to a terminal.
//
// Text is UTF-8; bytes that are none become U+FFFD. All O(text). Pure functions.
#ifndef STOWAGE_SOLVERS_BASE_TEXT_ESCAPE_H_
#define STOWAGE_SOLVERS_BASE_TEXT_ESCAPE_H_

#include <string>

namespace stowage {

// A JSON string (RFC 8259) with its quotes; also fit for the inside of <script>.
std::string JsonString(const std::string& text);

// The same, but for characters beyond U+FFFF: they stand as they are, in UTF-8, for readers that refuse the
// two escapes which JsonString writes for one.
std::string JsonStringUnpaired(const std::string& text);

// For element text and attributes of HTML.
std::string HtmlEscaped(const std::string& text);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_TEXT_ESCAPE_H_
