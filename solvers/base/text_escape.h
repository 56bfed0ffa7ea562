// Names that people gave, inside JSON, scripts and HTML: what comes out is one line of plain ASCII, whatever
// went in (but see JsonStringUtf8), and ends no string, script or element, and does nothing to a terminal.
//
// Text is UTF-8; bytes that are none become U+FFFD. All O(text). Pure functions.
#ifndef STOWAGE_SOLVERS_BASE_TEXT_ESCAPE_H_
#define STOWAGE_SOLVERS_BASE_TEXT_ESCAPE_H_

#include <string>

namespace stowage {

// A JSON string (RFC 8259) with its quotes; also fit for the inside of <script>.
std::string JsonString(const std::string& text);

// The same in UTF-8, in which only quotes, backslashes and controls are escaped: for readers that show an escape
// as it is written, or refuse the two of a character beyond U+FFFF. Not for the inside of <script>.
std::string JsonStringUtf8(const std::string& text);

// For element text and attributes of HTML.
std::string HtmlEscaped(const std::string& text);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_TEXT_ESCAPE_H_
