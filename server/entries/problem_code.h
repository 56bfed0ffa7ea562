// Problems as fields of what is stored. Internal to server/entries.
//
// An instance is 0 and a chain, 1 and a graph or 2 and a compute DAG, then whether there is a link, and the link.
// 3 and 4 are a chain and a graph some recompute of which stops early: each stage or vertex says how. A
// graph is stored in program order with its sender's ids. Every field of chain.h, graph.h and
// transfer_model.h is kept.
#ifndef STOWAGE_SERVER_ENTRIES_PROBLEM_CODE_H_
#define STOWAGE_SERVER_ENTRIES_PROBLEM_CODE_H_

#include <memory>

#include "server/entries/field_code.h"
#include "solvers/schedule/instance.h"

namespace stowage {

void WriteProblem(const Instance& instance, FieldWriter* out);

// Null where there is none, or one that Chain::Create, Graph::Create or ValidateTransferModel
// refuses; then `in` has failed. O(bytes).
std::shared_ptr<const Instance> ReadProblem(FieldReader* in);

// Stages with the loss, or vertices.
int64_t SizeOf(const Problem& problem);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_PROBLEM_CODE_H_
