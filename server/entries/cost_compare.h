// How the costs of two callers of one structure compare.
//
// Pure functions, hence thread-safe. All O(steps).
#ifndef STOWAGE_SERVER_ENTRIES_COST_COMPARE_H_
#define STOWAGE_SERVER_ENTRIES_COST_COMPARE_H_

#include "solvers/schedule/instance.h"

namespace stowage {

bool SameOverheads(const Problem& a, const Problem& b);
// Every overhead of `a` is at least that of `b`.
bool OverheadsAtLeast(const Problem& a, const Problem& b);
bool SameTimes(const Problem& a, const Problem& b);
// No link on both, or one of equal figures.
bool SameLink(const Instance& a, const Instance& b);
// The same schedules fit: equal overheads, and equal host memory or no link on both.
bool SameMemory(const Instance& a, const Instance& b);

// Of what steps save, or make; at least 1.
Bytes MeanTensor(const Problem& problem);
// The copy of a mean tensor, latency included, takes at most twice as long on one as on the other.
// Both have links.
bool AlikeLink(const Instance& a, const Instance& b);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_COST_COMPARE_H_
