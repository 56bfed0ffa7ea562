#include "tests/solvers/graph/brute_force_checkpoints.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace stowage::testing {
namespace {

using Set = uint32_t;

constexpr int64_t kInvalid = -1;

Set Bit(int v) { return Set{1} << v; }
bool IsOne(Set set) { return set != 0 && (set & (set - 1)) == 0; }

class BruteForce {
 public:
  explicit BruteForce(const CheckpointGraph& graph) : graph_(graph) {
    for (int v = 0; v < graph.size(); ++v) {
      Set in = 0, out = 0;
      for (const int u : graph.inputs(v)) in |= Bit(u);
      for (const int w : graph.readers(v)) out |= Bit(w);
      in_.push_back(in);
      out_.push_back(out);
      bytes_.push_back(graph.bytes(v).value());
      if (graph.must_keep(v)) needed_ |= Bit(v);
    }
    needed_ |= Bit(0) | Bit(graph.size() - 1);
  }

  int64_t Least() const {
    const Set all = Bit(graph_.size() - 1) | (Bit(graph_.size() - 1) - 1);
    int64_t least = std::numeric_limits<int64_t>::max();
    for (Set kept = 0; kept <= all; ++kept) {
      if ((kept & needed_) != needed_) continue;
      const int64_t objective = Objective(kept, all & ~kept);
      if (objective != kInvalid) least = std::min(least, objective);
    }
    return least;
  }

 private:
  int64_t Sum(Set set) const {
    int64_t sum = 0;
    for (size_t v = 0; v < bytes_.size(); ++v) {
      if ((set >> v & 1) != 0) sum += bytes_[v];
    }
    return sum;
  }
  Set Inputs(Set of) const { return Union(in_, of); }
  Set Readers(Set of) const { return Union(out_, of); }
  static Set Union(const std::vector<Set>& sets, Set of) {
    Set all = 0;
    for (size_t v = 0; v < sets.size(); ++v) {
      if ((of >> v & 1) != 0) all |= sets[v];
    }
    return all;
  }

  int64_t Objective(Set kept, Set rest) const {
    int64_t largest = 0;
    for (Set left = rest; left != 0;) {
      Set segment = left & (~left + 1);
      for (Set grown = 0; grown != segment;) {
        grown = segment;
        segment |= (Inputs(segment) | Readers(segment)) & rest;
      }
      left &= ~segment;
      const Set front = Inputs(segment) & kept;
      const Set behind = Readers(segment) & kept;
      if (!IsOne(front) || !IsOne(behind)) return kInvalid;
      largest = std::max(largest, Sum(segment) + HeldBeside(segment, behind, rest));
    }
    return Sum(kept) + largest;
  }

  // Inputs that the op behind a segment needs and that are of other segments.
  int64_t HeldBeside(Set segment, Set behind, Set rest) const {
    for (size_t v = 0; v < bytes_.size(); ++v) {
      if (behind == Bit(static_cast<int>(v)) && graph_.needs_inputs(static_cast<int>(v))) {
        return Sum(in_[v] & rest & ~segment);
      }
    }
    return 0;
  }

  const CheckpointGraph& graph_;
  std::vector<Set> in_, out_;
  std::vector<int64_t> bytes_;
  Set needed_ = 0;
};

}  // namespace

int64_t LeastObjectiveOfTwoEndPoints(const CheckpointGraph& graph) {
  return BruteForce(graph).Least();
}

}  // namespace stowage::testing
