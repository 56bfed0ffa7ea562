#include "tests/solvers/placement/minimalloc_file.h"

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stowage::testing {

std::vector<UnitBlock> MiniMallocBlocks(const std::string& folder, char name) {
  std::ifstream in(absl::StrCat(folder, "/", std::string(1, name), ".1048576.csv"));
  std::vector<UnitBlock> blocks;
  std::string line;
  std::getline(in, line);  // id,lower,upper,size
  while (std::getline(in, line)) {
    const std::vector<std::string> fields = absl::StrSplit(line, ',');
    UnitBlock block{};
    if (fields.size() != 4 || !absl::SimpleAtoi(fields[1], &block.begin) ||
        !absl::SimpleAtoi(fields[2], &block.end) || !absl::SimpleAtoi(fields[3], &block.size)) {
      return {};
    }
    blocks.push_back(block);
  }
  return blocks;
}

}  // namespace stowage::testing
