#include "solvers/offload/part_groups.h"

#include <algorithm>

namespace stowage {

bool HasParts(const Chain& chain) {
  for (int l = 1; l <= chain.length() + 1; ++l) {
    if (chain.stage(l).parts() > 0) return true;
  }
  return false;
}

std::vector<PartGroup> PartGroupsOf(const Stage& stage) {
  std::vector<PartGroup> groups;
  const int last = stage.parts();
  if (last == 0) return groups;
  const Bytes enough = std::max(Bytes(stage.saved.value() / 8), Bytes(1));
  const Bytes least = Bytes(enough.value() / 100);
  PartGroup next;
  for (int part = 1; part < last; ++part) {
    const Bytes bytes = stage.part(part);
    if (bytes <= least) continue;
    next.parts.push_back(part);
    next.bytes += bytes;
    if (next.bytes < enough) continue;
    groups.push_back(std::move(next));
    next = PartGroup();
  }
  if (!next.parts.empty() && !groups.empty()) {
    PartGroup& before = groups.back();
    before.parts.insert(before.parts.end(), next.parts.begin(), next.parts.end());
    before.bytes += next.bytes;
  } else if (!next.parts.empty()) {
    groups.push_back(std::move(next));
  }
  groups.push_back({{last}, stage.part(last)});
  return groups;
}

}  // namespace stowage
