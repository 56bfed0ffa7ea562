// Text inside SVG and DOT files.
#ifndef STOWAGE_SOLVERS_VIZ_MARKUP_H_
#define STOWAGE_SOLVERS_VIZ_MARKUP_H_

#include <cstddef>
#include <string>
#include <vector>

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

// Where the axis of a figure has its numbers.

// Round numbers from 0 to the first that is not below `top` (> 0): about `count` of them, each 1, 2
// or 5 times a power of ten apart.
std::vector<double> Ticks(double top, int count);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_VIZ_MARKUP_H_
