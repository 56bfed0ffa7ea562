// Text inside SVG and DOT files.
#ifndef STOWAGE_SOLVERS_DRAWING_MARKUP_H_
#define STOWAGE_SOLVERS_DRAWING_MARKUP_H_

#include <cstddef>
#include <string>

namespace stowage {

// For element text and attributes of XML: the five special characters become entities, control
// characters and bytes beyond ASCII question marks.
std::string XmlEscaped(const std::string& text);
// For a double-quoted string of DOT.
std::string DotEscaped(const std::string& text);
// At most `limit` characters, the middle left out.
std::string Shortened(const std::string& text, size_t limit);
// The fill of segment or tree node number `index`: pale colours in turn, "#rrggbb".
const char* PaleColour(size_t index);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_DRAWING_MARKUP_H_
