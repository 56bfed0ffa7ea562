// The tensors of a trace that are worth moving together. Internal to solvers/graph/joint.
#ifndef STOWAGE_SOLVERS_GRAPH_JOINT_NESTED_TRACE_H_
#define STOWAGE_SOLVERS_GRAPH_JOINT_NESTED_TRACE_H_

#include "solvers/model/transfer_model.h"
#include "solvers/offload/compute_trace.h"

namespace stowage {

// The same with fewer tensors. Sets leave in one order and come back in the other: a tensor that is
// read again early brings back all that left after it. And a small one takes the link for its
// latencies. So those of which none is in the way of another one, of the most bytes, and none that
// takes more latency than it takes to copy. O(tensors log tensors).
ComputeTrace NestedTrace(ComputeTrace trace, const TransferModel& link);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_JOINT_NESTED_TRACE_H_
