#include "solvers/viz/markup.h"

#include <array>
#include <cmath>

#include "absl/strings/str_replace.h"

namespace stowage {
namespace {

char Printable(char c) { return c >= ' ' && c <= '~' ? c : '?'; }

}  // namespace

std::string XmlEscaped(const std::string& text) {
  std::string printable;
  for (const char c : text) printable += Printable(c);
  return absl::StrReplaceAll(
      printable, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&apos;"}});
}

std::string DotEscaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += Printable(c);
  }
  return escaped;
}

std::string Shortened(const std::string& text, size_t limit) {
  if (text.size() <= limit) return text;
  const size_t tail = (limit - 2) / 2;
  return text.substr(0, limit - 2 - tail) + ".." + text.substr(text.size() - tail);
}

const char* PaleColour(size_t index) {
  static constexpr std::array<const char*, 8> kColours = {
      "#cfe3f5", "#fbe3c4", "#d3eed2", "#f6d3d6", "#e4d9f2", "#e9dfd8", "#fbd9ec", "#dde0a6"};
  return kColours[index % kColours.size()];
}

std::vector<double> Ticks(double top, int count) {
  const double rough = top / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * power >= rough * (1 - 1e-9)) step = factor * power;
  }
  std::vector<double> ticks;
  for (int i = 0; ticks.empty() || ticks.back() < top * (1 - 1e-9); ++i) ticks.push_back(i * step);
  return ticks;
}

}  // namespace stowage
