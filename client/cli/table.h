// Columns of text, aligned.
#ifndef STOWAGE_CLIENT_CLI_TABLE_H_
#define STOWAGE_CLIENT_CLI_TABLE_H_

#include <string>
#include <vector>

namespace stowage {

// Two lines of head above each column, rows as they are added. All cells right-aligned, the first
// column left.
class Table {
 public:
  explicit Table(std::vector<std::pair<std::string, std::string>> head);
  void AddRow(std::vector<std::string> cells);
  std::string ToString() const;

 private:
  std::vector<std::vector<std::string>> rows_;  // the head's two lines first
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_TABLE_H_
