#include "client/cli/curve_sketch.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stowage {
namespace {

constexpr int kMargin = 8;

// The cell, of `cells`, that the value is in.
int CellOf(double value, const CurveAxis& axis, int cells) {
  const double share = (value - axis.low) / (axis.high - axis.low);
  return std::clamp(static_cast<int>(std::lround(share * (cells - 1))), 0, cells - 1);
}

std::string Label(double value) {
  return absl::StrFormat("%*s", kMargin, absl::StrFormat("%.4g", value));
}

}  // namespace

std::string CurveSketch(const std::vector<CurvePoint>& points, const CurveAxis& x,
                        const CurveAxis& y, int width, int height) {
  std::vector<std::string> rows(static_cast<size_t>(height),
                                std::string(static_cast<size_t>(width), ' '));
  const auto at = [&](int column, int row) -> char& {
    return rows[static_cast<size_t>(height - 1 - row)][static_cast<size_t>(column)];
  };
  for (size_t p = 0; p < points.size(); ++p) {
    const int first = CellOf(points[p].x, x, width);
    const int end = p + 1 < points.size() ? CellOf(points[p + 1].x, x, width) : width;
    const int row = CellOf(points[p].y, y, height);
    for (int column = first + 1; column < end; ++column) at(column, row) = '-';
    at(first, row) = '*';
  }
  std::string text = absl::StrCat(std::string(kMargin - 2, ' '), y.name, "\n");
  for (int row = height - 1; row >= 0; --row) {
    const bool end = row == height - 1 || row == 0;
    std::string& cells = rows[static_cast<size_t>(height - 1 - row)];
    cells.erase(cells.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, end ? Label(row == 0 ? y.low : y.high) : std::string(kMargin, ' '), " |",
                    cells, "\n");
  }
  const std::string low = absl::StrFormat("%.4g", x.low), high = absl::StrFormat("%.4g", x.high);
  absl::StrAppend(&text, std::string(kMargin + 1, ' '), "+",
                  std::string(static_cast<size_t>(width), '-'), "\n", std::string(kMargin + 2, ' '),
                  low);
  const int middle = width - static_cast<int>(low.size() + high.size() + x.name.size());
  const std::string before(static_cast<size_t>(std::max(1, middle / 2)), ' ');
  const std::string after(static_cast<size_t>(std::max(1, middle - middle / 2)), ' ');
  absl::StrAppend(&text, before, x.name, after, high, "\n");
  return text;
}

}  // namespace stowage
