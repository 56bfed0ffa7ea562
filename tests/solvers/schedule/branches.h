// A graph with two branches, of which one communicates: small enough to know its timeline by heart.
#ifndef STOWAGE_TESTS_SOLVERS_SCHEDULE_BRANCHES_H_
#define STOWAGE_TESTS_SOLVERS_SCHEDULE_BRANCHES_H_

#include <cstdint>
#include <vector>

#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage::testing {

inline Instruction Communicating(Instruction i) {
  i.stream = Stream::kCommunication;
  return i;
}

inline Schedule operator+(Schedule a, const Schedule& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Vertex Op(int64_t k, const std::vector<int64_t>& inputs, int64_t bytes, int64_t gradient) {
  Vertex v;
  v.id = v.program_order = k;
  for (const int64_t input : inputs) v.inputs.push_back({input, false});
  v.output = Bytes(bytes);
  v.output_gradient = Bytes(gradient);
  v.forward_time = Nanos(10);
  v.backward_time = Nanos(100);
  return v;
}

// Two branches from 1 to 5: 2, which communicates, and 3, then 4. Sizes are distinct powers of ten,
// gradients twice those of their tensors.
inline GraphSpec BranchesSpec() {
  GraphSpec spec;
  spec.vertices = {Op(1, {}, 1, 2), Op(2, {1}, 10, 20), Op(3, {1}, 1000, 2000),
                   Op(4, {3}, 10000, 20000), Op(5, {2, 4}, 0, 0)};
  Vertex& v = spec.vertices[1];
  v.collective = true;
  v.forward_time = Nanos(50);
  v.backward_time = Nanos(150);
  v.extra_saved = Bytes(100);
  v.forward_saving_overhead = Bytes(100000);
  v.backward_overhead = Bytes(200000);
  return spec;
}

inline Graph Branches() { return *Graph::Create(BranchesSpec()); }

inline Schedule BranchesSchedule() {
  return {
      ForwardSave(1), Communicating(ForwardSave(2)), ForwardSave(3), ForwardSave(4), ForwardSave(5),
      Backward(5),    Communicating(Backward(2)),    Backward(4),    Backward(3),    Backward(1)};
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_SCHEDULE_BRANCHES_H_
