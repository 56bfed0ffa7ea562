// One network at two sizes: lengths of a sequence, or batches, in buckets.
//
// What is held at any time of a schedule is a sum of sizes, each counted in full or not at all. So a
// schedule of the larger problem is one of the smaller, within the larger one's peak, on the device
// and on the host, whatever the times and the link: a plan for a bucket serves all that is in it.
// Thread-safe.
#ifndef STOWAGE_SOLVERS_MODEL_DOMINANCE_H_
#define STOWAGE_SOLVERS_MODEL_DOMINANCE_H_

#include "solvers/model/problem.h"

namespace stowage {

// Whether the structures are equal but for sizes, and no size or overhead of `larger` is below that of
// `smaller`; of saved tensors that go singly, and the rest, each one. Whether a vertex has extras at
// all is structure: a schedule drops and renews them. Times and names do not count.
// O(size of the problem).
bool Dominates(const Problem& larger, const Problem& smaller);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_DOMINANCE_H_
