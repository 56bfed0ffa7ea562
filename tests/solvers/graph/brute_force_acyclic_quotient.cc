#include "tests/solvers/graph/brute_force_acyclic_quotient.h"

#include <algorithm>
#include <cstddef>

namespace stowage::testing {
namespace {

using Set = uint32_t;  // of vertices

Set Bit(int v) { return Set{1} << v; }
bool Has(Set set, int v) { return (set & Bit(v)) != 0; }

Set Of(absl::Span<const int> vertices) {
  Set set = 0;
  for (const int v : vertices) set |= Bit(v);
  return set;
}

int64_t BytesOf(const CheckpointGraph& graph, Set set) {
  int64_t bytes = 0;
  for (int v = 0; v < graph.size(); ++v) {
    if (Has(set, v)) bytes += graph.bytes(v).value();
  }
  return bytes;
}

// What vertices of the set read, or are read by.
Set InputsOf(const CheckpointGraph& graph, Set set) {
  Set inputs = 0;
  for (int v = 0; v < graph.size(); ++v) {
    if (Has(set, v)) inputs |= Of(graph.inputs(v));
  }
  return inputs;
}

Set ReadersOf(const CheckpointGraph& graph, Set set) {
  Set readers = 0;
  for (int v = 0; v < graph.size(); ++v) {
    if (Has(set, v)) readers |= Of(graph.readers(v));
  }
  return readers;
}

std::vector<Set> SegmentsOf(const CheckpointGraph& graph, Set kept) {
  std::vector<Set> segments;
  Set seen = kept;
  for (int v = 0; v < graph.size(); ++v) {
    if (Has(seen, v)) continue;
    Set segment = Bit(v), before = 0;
    while (segment != before) {
      before = segment;
      segment |= (InputsOf(graph, segment) | ReadersOf(graph, segment)) & ~kept;
    }
    seen |= segment;
    segments.push_back(segment);
  }
  return segments;
}

// Whether something that a segment feeds from outside feeds it: follow its readers through whole
// segments as far as it goes.
bool WaitsForItself(const CheckpointGraph& graph, const std::vector<Set>& segments, Set segment) {
  Set after = ReadersOf(graph, segment) & ~segment, before = 0;
  while (after != before) {
    before = after;
    for (const Set other : segments) {
      if ((after & other) != 0) after |= other;
    }
    after |= ReadersOf(graph, after);
  }
  return (after & segment) != 0;
}

bool IsOne(Set set) { return set != 0 && (set & (set - 1)) == 0; }

}  // namespace

std::optional<DefinedCost> CostByDefinition(const CheckpointGraph& graph, uint32_t kept,
                                            SegmentRule rule) {
  for (int v = 0; v < graph.size(); ++v) {
    const bool must = v == graph.source() || v == graph.target() || graph.must_keep(v);
    if (must && !Has(kept, v)) return std::nullopt;
  }
  const std::vector<Set> segments = SegmentsOf(graph, kept);
  DefinedCost cost = {BytesOf(graph, kept), 0};
  for (const Set segment : segments) {
    const bool two_ends =
        IsOne(InputsOf(graph, segment) & kept) && IsOne(ReadersOf(graph, segment) & kept);
    const bool allowed =
        rule == SegmentRule::kTwoEndPoints ? two_ends : !WaitsForItself(graph, segments, segment);
    if (!allowed) return std::nullopt;
    int64_t bytes = BytesOf(graph, segment);
    for (int v = 0; v < graph.size(); ++v) {
      const Set inputs = Of(graph.inputs(v)) & ~kept;
      const bool holds = Has(kept, v) && graph.needs_inputs(v) && (inputs & segment) != 0;
      if (holds) bytes += BytesOf(graph, inputs & ~segment);
    }
    cost.segment = std::max(cost.segment, std::min(bytes, graph.total().value()));
  }
  return cost;
}

int64_t BestObjective(const CheckpointGraph& graph, SegmentRule rule) {
  int64_t best = graph.total().value();
  for (Set kept = 0; kept < Bit(graph.size()); ++kept) {
    const std::optional<DefinedCost> cost = CostByDefinition(graph, kept, rule);
    if (cost) best = std::min(best, cost->checkpoints + cost->segment);
  }
  return best;
}

}  // namespace stowage::testing
