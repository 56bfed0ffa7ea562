#include "solvers/chain/stage_repeats.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

namespace stowage {
namespace {

// Numbers equal stages alike.
std::vector<int> ClassesOf(const PersistentSpace& space) {
  std::vector<int> classes(static_cast<size_t>(space.last()) + 1);
  std::map<std::array<int64_t, 8>, int> numbers;
  for (int s = 1; s <= space.last(); ++s) {
    const int next = static_cast<int>(numbers.size());
    classes[static_cast<size_t>(s)] = numbers.insert({space.StageKey(s), next}).first->second;
  }
  return classes;
}

}  // namespace

std::vector<StageRepeat> FindStageRepeats(const PersistentSpace& space) {
  const size_t last = static_cast<size_t>(space.last());
  const std::vector<int> classes = ClassesOf(space);
  std::vector<StageRepeat> repeats(last + 1);
  // common[u]: how many stages from s and from u on are the same. Falls back to those from s + 1.
  std::vector<int> common(last + 2, 0);
  for (size_t s = last; s >= 1; --s) {
    for (size_t u = s + 1; u <= last; ++u) {
      common[u] = classes[s] == classes[u] ? 1 + common[u + 1] : 0;
      if (common[u] > repeats[s].length) repeats[s] = {static_cast<int>(u), common[u]};
    }
  }
  return repeats;
}

int64_t DistinctIntervals(const std::vector<StageRepeat>& repeats) {
  int64_t distinct = 0;
  const int64_t last = static_cast<int64_t>(repeats.size()) - 1;
  for (int64_t s = 1; s <= last; ++s)
    distinct += last - s + 1 - repeats[static_cast<size_t>(s)].length;
  return distinct;
}

}  // namespace stowage
