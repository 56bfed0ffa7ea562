#ifndef STOWAGE_CLIENT_TORCH_PROFILE_MEDIAN_H_
#define STOWAGE_CLIENT_TORCH_PROFILE_MEDIAN_H_

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stowage {

// Of one value at least. The upper one of two in the middle.
template <class Value>
Value Median(std::vector<Value> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_PROFILE_MEDIAN_H_
