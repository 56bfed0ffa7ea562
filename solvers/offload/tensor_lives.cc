#include "solvers/offload/tensor_lives.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stowage {

TensorLives::TensorLives(const Schedule& compute, const std::vector<TimelinePoint>& timeline,
                         int last)
    : lives_(2 * (static_cast<size_t>(last) + 1)) {
  trace_.steps.reserve(timeline.size());
  for (const TimelinePoint& point : timeline) {
    trace_.steps.push_back({point.end - point.start, std::max(point.running, point.held)});
  }
  const auto first = std::find_if(compute.begin(), compute.end(),
                                  [](const Instruction& i) { return i.op == Op::kBackward; });
  trace_.turn = static_cast<int>(first - compute.begin());
}

void TensorLives::Make(TensorKind kind, int stage, Bytes bytes, int step) {
  lives_[Index(kind, stage)] = {true, false, {kind, stage, bytes, step, step, 0, 0}, nullptr};
}

void TensorLives::MakeInGroups(int stage, const std::vector<PartGroup>& groups, int step) {
  Make(TensorKind::kSaved, stage, groups.back().bytes, step);
  Life& life = lives_[Index(TensorKind::kSaved, stage)];
  life.tensor.parts = groups.back().parts;
  life.groups = &groups;
}

void TensorLives::Read(TensorKind kind, int stage, int step) {
  Life& life = lives_[Index(kind, stage)];
  if (step < trace_.turn) {
    life.tensor.last_read = step;
  } else if (life.tensor.made < trace_.turn && !life.crosses) {
    life.crosses = true;
    life.tensor.next_read = step;
  }
}

void TensorLives::Write(TensorKind kind, int stage, int step) {
  Read(kind, stage, step);
  if (step < trace_.turn) lives_[Index(kind, stage)].tensor.made = step;
}

void TensorLives::Drop(TensorKind kind, int stage, int step) {
  Life& life = lives_[Index(kind, stage)];
  Read(kind, stage, step);
  life.held = false;
  if (!life.crosses) return;
  if (life.groups != nullptr) DropGroups(life, step);
  life.tensor.dropped = step;
  trace_.tensors.push_back(life.tensor);
}

// All but the last, which nothing reads between where they are made and where they are dropped.
void TensorLives::DropGroups(const Life& life, int step) {
  for (size_t g = 0; g + 1 < life.groups->size(); ++g) {
    const PartGroup& group = (*life.groups)[g];
    ComputeTrace::Tensor tensor = life.tensor;
    tensor.bytes = group.bytes;
    tensor.parts = group.parts;
    tensor.last_read = tensor.made;
    tensor.next_read = tensor.dropped = step;
    trace_.tensors.push_back(std::move(tensor));
  }
}

ComputeTrace TensorLives::Finish() {
  const int end = static_cast<int>(trace_.steps.size());
  std::vector<ComputeTrace::Tensor>& tensors = trace_.tensors;
  for (Life& life : lives_) {
    if (!life.held || !life.crosses) continue;
    life.tensor.dropped = end;
    tensors.push_back(life.tensor);
  }
  const auto useless = [](const ComputeTrace::Tensor& t) {
    return t.bytes == Bytes(0) || t.next_read <= t.last_read + 1;
  };
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(), useless), tensors.end());
  std::sort(tensors.begin(), tensors.end(),
            [](const ComputeTrace::Tensor& a, const ComputeTrace::Tensor& b) {
              return std::tie(a.last_read, b.next_read, a.stage, a.kind, a.parts) <
                     std::tie(b.last_read, a.next_read, b.stage, b.kind, b.parts);
            });
  return std::move(trace_);
}

}  // namespace stowage
