// The middle of what several jobs measured.
#ifndef STOWAGE_SERVER_ENTRIES_MEDIAN_H_
#define STOWAGE_SERVER_ENTRIES_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stowage {

// Of one value at least; of two in the middle the lower one. (The client's Median takes the upper one: under one
// name they would be one to the linker.)
template <class Value>
Value LowerMedian(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_MEDIAN_H_
