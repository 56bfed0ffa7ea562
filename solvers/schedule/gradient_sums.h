// In which order backwards have to run so that gradients come out bit for bit as in plain training, and in the memory
// that the profile says (algorithms.md, "Sums of gradients"): of a tensor that has a gradient and several readers, the
// readers' backwards run in reverse program order. It is a rule of solvers, not of the evaluator.
#ifndef STOWAGE_SOLVERS_SCHEDULE_GRADIENT_SUMS_H_
#define STOWAGE_SOLVERS_SCHEDULE_GRADIENT_SUMS_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "solvers/model/graph.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

// Immutable, hence safe to share between threads.
class GradientSums {
 public:
  // O(V + E).
  explicit GradientSums(const Graph& graph);
  // The same for groups of vertices. The backwards of a group run one after the other, in reverse; `groups` has the
  // members of each, rising. Where the order of the groups is not the order in which they read a tensor, no pair is
  // required of them: check the schedule with KeptBy. O(V + E).
  GradientSums(const Graph& graph, const std::vector<std::vector<int>>& groups);

  // Vertices whose backwards run before that of v; the rest follows from these.
  absl::Span<const int> Before(int v) const { return before_.Of(v); }
  // Vertices whose backwards run after that of v.
  absl::Span<const int> After(int v) const { return after_.Of(v); }

  // Of a valid schedule of the graph. O(V + E + instructions).
  bool KeptBy(const Schedule& schedule) const;

  // With backwards of views drawn forward to where the order asks for them, if all that read the view have
  // run by then; all else stays where it is. Of sums by vertex. O(V + E + instructions).
  Schedule WithViewsInOrder(const Graph& graph, const Schedule& schedule) const;

 private:
  using Pair = std::pair<int, int>;  // a vertex, another one
  // Others by vertex.
  class Lists {
   public:
    Lists() = default;
    Lists(int vertices, const std::vector<Pair>& pairs);
    absl::Span<const int> Of(int v) const {
      const size_t begin = first_[static_cast<size_t>(v)];
      return {others_.data() + begin, first_[static_cast<size_t>(v) + 1] - begin};
    }

   private:
    std::vector<size_t> first_;
    std::vector<int> others_;
  };

  GradientSums(const Graph& graph, const std::vector<int>& group_of, int groups);

  Lists before_;
  Lists after_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_GRADIENT_SUMS_H_
