#include "client/cli/table.h"

#include <algorithm>
#include <cstddef>

namespace stowage {

Table::Table(std::vector<std::pair<std::string, std::string>> head) : rows_(2) {
  for (auto& [upper, lower] : head) {
    rows_[0].push_back(std::move(upper));
    rows_[1].push_back(std::move(lower));
  }
}

void Table::AddRow(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

std::string Table::ToString() const {
  std::vector<size_t> widths(rows_[0].size(), 0);
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (size_t r = 0; r < rows_.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < rows_[r].size(); ++c) {
      const std::string pad(widths[c] - rows_[r][c].size(), ' ');
      line += c == 0 ? rows_[r][c] + pad : "  " + pad + rows_[r][c];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
    if (r == 1) text += std::string(line.size(), '-') + "\n";
  }
  return text;
}

}  // namespace stowage
