#include "solvers/plan/store_all_schedule.h"

namespace stowage {

Schedule StoreAllSchedule(const Chain& chain) {
  Schedule schedule;
  const int last = chain.length() + 1;
  schedule.reserve(static_cast<size_t>(last) * 2);
  for (int l = 1; l <= last; ++l) schedule.push_back(ForwardKeepAll(l));
  for (int l = last; l >= 1; --l) schedule.push_back(Backward(l));
  return schedule;
}

}  // namespace stowage
