// Rows that a command lists: a table for people, JSON or CSV for programs.
#ifndef STOWAGE_CLIENT_CLI_LISTING_H_
#define STOWAGE_CLIENT_CLI_LISTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/plan_flags.h"

namespace stowage {

class Listing {
 public:
  struct Column {
    std::string upper, lower;  // the head for people; both empty: not in the table
    std::string field;         // the name for programs; empty: not for them
  };
  struct Cell {
    std::string text;     // for people
    std::string value;    // for programs: a number, true, false, or the text of a string
    bool quoted = false;  // the value is a string
  };

  static Cell Text(const std::string& text) { return {text, text, true}; }
  static Cell Text(const std::string& text, const std::string& value) {
    return {text, value, true};
  }
  static Cell Integer(int64_t value);
  static Cell Number(const std::string& text, int64_t value);
  static Cell Number(const std::string& text, double value);
  static Cell YesNo(bool yes);
  // Not known, or without a meaning in its row: null, or nothing.
  static Cell Nothing() { return {}; }

  explicit Listing(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // As many cells as columns.
  void AddRow(std::vector<Cell> cells) { rows_.push_back(std::move(cells)); }
  bool empty() const { return rows_.empty(); }

  std::string Table() const;
  // An array of objects.
  std::string Json() const;
  // A head of names, then a row a line (RFC 4180, lines end with \n).
  std::string Csv() const;
  // One of them, with a line's end behind JSON.
  std::string As(Format format) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_LISTING_H_
