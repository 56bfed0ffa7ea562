// How much less the next plan is to take when a step ran out of memory.
#ifndef STOWAGE_CLIENT_AGENT_OUT_OF_MEMORY_H_
#define STOWAGE_CLIENT_AGENT_OUT_OF_MEMORY_H_

#include "solvers/model/units.h"

namespace stowage {

// `peak` is that of the plan that failed, `got` the most that its step held: see OutOfMemoryOptions. Less
// than `peak`, positive where that is more than one byte. O(1).
Bytes SmallerBudget(Bytes peak, Bytes got, double factor);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_OUT_OF_MEMORY_H_
