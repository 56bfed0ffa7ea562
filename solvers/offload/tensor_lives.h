// Follows the tensors of a schedule from step to step, for the trace of it. Internal to traces.
#ifndef STOWAGE_SOLVERS_OFFLOAD_TENSOR_LIVES_H_
#define STOWAGE_SOLVERS_OFFLOAD_TENSOR_LIVES_H_

#include <cstddef>
#include <vector>

#include "solvers/model/units.h"
#include "solvers/offload/compute_trace.h"
#include "solvers/offload/part_groups.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"

namespace stowage {

class TensorLives {
 public:
  // Of a schedule that the referee has accepted, with its timeline; tensors are of stages 0..last.
  TensorLives(const Schedule& compute, const std::vector<TimelinePoint>& timeline, int last);

  bool Held(TensorKind kind, int stage) const { return lives_[Index(kind, stage)].held; }
  // A step of -1: held from the start.
  void Make(TensorKind kind, int stage, Bytes bytes, int step);
  // What a stage saves, in groups (not empty), which outlive this; what Read says is of the last one
  // alone.
  void MakeInGroups(int stage, const std::vector<PartGroup>& groups, int step);
  void Read(TensorKind kind, int stage, int step);
  // Over what is held: it may not leave before.
  void Write(TensorKind kind, int stage, int step);
  void Drop(TensorKind kind, int stage, int step);

  ComputeTrace Finish();

 private:
  struct Life {
    bool held = false;
    bool crosses = false;                            // made before the turn and read after it
    ComputeTrace::Tensor tensor;                     // or of its last group
    const std::vector<PartGroup>* groups = nullptr;  // null: it has none
  };

  void DropGroups(const Life& life, int step);

  static size_t Index(TensorKind kind, int stage) {
    return 2 * static_cast<size_t>(stage) + static_cast<size_t>(kind);
  }

  ComputeTrace trace_;
  std::vector<Life> lives_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_OFFLOAD_TENSOR_LIVES_H_
