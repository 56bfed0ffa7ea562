#include "tests/client/cli/command_output.h"

#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "absl/strings/str_split.h"

namespace stowage {
namespace {

// RFC 4180: a quote opens and closes what may hold commas, two of them are one.
std::vector<std::string> CellsOf(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"' && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      cells.back() += line[++i];
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ',' && !quoted) {
      cells.emplace_back();
    } else {
      cells.back() += line[i];
    }
  }
  return cells;
}

}  // namespace

google::protobuf::Struct Json(const std::string& text) {
  google::protobuf::Struct json;
  if (!google::protobuf::util::JsonStringToMessage(text, &json).ok()) {
    throw std::invalid_argument("no object of JSON: " + text);
  }
  return json;
}

std::vector<CsvRow> Csv(const std::string& text) {
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  if (lines.empty()) return {};
  const std::vector<std::string> names = CellsOf(lines[0]);
  std::vector<CsvRow> rows;
  for (size_t l = 1; l < lines.size(); ++l) {
    const std::vector<std::string> cells = CellsOf(lines[l]);
    EXPECT_EQ(cells.size(), names.size()) << lines[l];
    CsvRow row;
    for (size_t c = 0; c < names.size() && c < cells.size(); ++c) row[names[c]] = cells[c];
    rows.push_back(row);
  }
  return rows;
}

bool HasNoCell(const std::string& table) {
  const std::vector<std::string> cells =
      absl::StrSplit(table, absl::ByAnyChar(" \n"), absl::SkipEmpty());
  return std::find(cells.begin(), cells.end(), "NO") != cells.end();
}

}  // namespace stowage
