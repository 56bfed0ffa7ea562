// Chains, graphs and compute DAGs between the contract and the solver library. Internal to proto/codec: codec.h
// is what others use.
#ifndef STOWAGE_PROTO_CODEC_CODEC_PROBLEM_H_
#define STOWAGE_PROTO_CODEC_CODEC_PROBLEM_H_

#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/graph.h"
#include "solvers/model/units.h"
#include "stowage/v1/profile.pb.h"

namespace stowage {

void WriteChain(const Chain& chain, v1::Chain* out);
ChainSpec ReadChain(const v1::Chain& message, const std::string& name);

void WriteGraph(const Graph& graph, v1::Graph* out);
// Fails for an enum value that this version does not know; all other rules are Graph::Create's.
absl::StatusOr<GraphSpec> ReadGraph(const v1::Graph& message, const std::string& name);

// The same for a graph without backwards.
void WriteDag(const Graph& dag, v1::ComputeDag* out);
absl::StatusOr<GraphSpec> ReadDag(const v1::ComputeDag& message, const std::string& name);

// What a stage and a vertex say of a recompute that stops early; Step and Message are of one kind.
template <class Step, class Message>
void WriteStoppedRecompute(const Step& step, Message* out) {
  if (const auto& time = step.recompute_saving_time) {
    out->set_recompute_saving_time_ns(time->value());
  }
  if (const auto& overhead = step.recompute_saving_overhead) {
    out->set_recompute_saving_overhead_bytes(overhead->value());
  }
}

template <class Message, class Step>
void ReadStoppedRecompute(const Message& message, Step* step) {
  if (message.has_recompute_saving_time_ns()) {
    step->recompute_saving_time = Nanos(message.recompute_saving_time_ns());
  }
  if (message.has_recompute_saving_overhead_bytes()) {
    step->recompute_saving_overhead = Bytes(message.recompute_saving_overhead_bytes());
  }
}

}  // namespace stowage

#endif  // STOWAGE_PROTO_CODEC_CODEC_PROBLEM_H_
