#include "solvers/chain/segments.h"

#include <cstddef>

namespace stowage {
SegmentEnds SequentialSegments(const Chain& chain, int k) {
  const int size = chain.length() / k;
  SegmentEnds ends;
  for (int i = 1; i < k; ++i) ends.push_back(i * size);
  return ends;
}

Schedule SegmentedSchedule(const Chain& chain, const SegmentEnds& ends) {
  const int last = chain.length() + 1;
  Schedule schedule;
  int first = 1;
  for (const int end : ends) {
    schedule.push_back(ForwardKeepInput(first));
    for (int l = first + 1; l <= end; ++l) schedule.push_back(ForwardKeepNothing(l));
    first = end + 1;
  }
  const auto keep_whole = [&schedule](int from, int to) {
    for (int l = from; l <= to; ++l) schedule.push_back(ForwardKeepAll(l));
    for (int l = to; l >= from; --l) schedule.push_back(Backward(l));
  };
  keep_whole(first, last);
  for (size_t i = ends.size(); i-- > 0;) keep_whole(i == 0 ? 1 : ends[i - 1] + 1, ends[i]);
  return schedule;
}

}  // namespace stowage
