// Reads the instances of MiniMalloc (tests/data/minimalloc).
#ifndef STOWAGE_TESTS_SOLVERS_PLACEMENT_MINIMALLOC_FILE_H_
#define STOWAGE_TESTS_SOLVERS_PLACEMENT_MINIMALLOC_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "solvers/placement/placement.h"

namespace stowage::testing {

// What all eleven are to fit in; their sizes are multiples of 1024.
inline constexpr int64_t kMiniMallocCapacity = 1048576;

// Of 'A' to 'K', in bytes, from the folder that has the files; empty where one cannot be read.
std::vector<UnitBlock> MiniMallocBlocks(const std::string& folder, char name);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_PLACEMENT_MINIMALLOC_FILE_H_
