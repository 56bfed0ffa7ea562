#include "client/cli/listing.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/json_text.h"
#include "client/cli/table.h"

namespace stowage {
namespace {

bool IsShown(const Listing::Column& column) {
  return !column.upper.empty() || !column.lower.empty();
}

std::string JsonOf(const Listing::Cell& cell) {
  if (cell.quoted) return JsonString(cell.value);
  return cell.value.empty() ? "null" : cell.value;
}

std::string CsvOf(const std::string& value) {
  if (value.find_first_of(",\"\r\n") == std::string::npos) return value;
  return absl::StrCat("\"", absl::StrReplaceAll(value, {{"\"", "\"\""}}), "\"");
}

}  // namespace

Listing::Cell Listing::Integer(int64_t value) {
  return {absl::StrCat(value), absl::StrCat(value), false};
}

Listing::Cell Listing::Number(const std::string& text, int64_t value) {
  return {text, absl::StrCat(value), false};
}

Listing::Cell Listing::Number(const std::string& text, double value) {
  return {text, JsonNumber(value), false};
}

Listing::Cell Listing::YesNo(bool yes) { return {yes ? "yes" : "no", JsonBool(yes), false}; }

std::string Listing::Table() const {
  std::vector<std::pair<std::string, std::string>> head;
  for (const Column& column : columns_) {
    if (IsShown(column)) head.emplace_back(column.upper, column.lower);
  }
  stowage::Table table(std::move(head));
  for (const std::vector<Cell>& row : rows_) {
    std::vector<std::string> cells;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (IsShown(columns_[c])) cells.push_back(row[c].text);
    }
    table.AddRow(std::move(cells));
  }
  return table.ToString();
}

std::string Listing::Json() const {
  std::vector<std::string> objects;
  for (const std::vector<Cell>& row : rows_) {
    JsonFields fields;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (!columns_[c].field.empty()) fields.emplace_back(columns_[c].field, JsonOf(row[c]));
    }
    objects.push_back(JsonObject(fields));
  }
  return JsonArray(objects);
}

std::string Listing::Csv() const {
  std::vector<std::string> names;
  for (const Column& column : columns_) {
    if (!column.field.empty()) names.push_back(column.field);
  }
  std::string text = absl::StrJoin(names, ",") + "\n";
  for (const std::vector<Cell>& row : rows_) {
    std::vector<std::string> values;
    for (size_t c = 0; c < columns_.size(); ++c) {
      if (!columns_[c].field.empty()) values.push_back(CsvOf(row[c].value));
    }
    absl::StrAppend(&text, absl::StrJoin(values, ","), "\n");
  }
  return text;
}

std::string Listing::As(Format format) const {
  switch (format) {
    case Format::kText:
      return Table();
    case Format::kJson:
      return Json() + "\n";
    case Format::kCsv:
      return Csv();
  }
  return "";
}

}  // namespace stowage
