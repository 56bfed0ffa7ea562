// Shares a fixed amount of work among frontier searches (frontier_search.h) whose largest segments
// lie in different bands: where to stop segments is what a set is mostly about, and within a band
// states differ in little but what they hold.
//
// Round by round the more promising half of the bands is searched with twice the width. A band that
// was searched without a cut is closed: once all are, the best set is optimal. Bands that the path
// bound rules out are closed from the start.
#ifndef STOWAGE_SOLVERS_GRAPH_BAND_SEARCH_H_
#define STOWAGE_SOLVERS_GRAPH_BAND_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "solvers/graph/checkpoint_set.h"
#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/frontier_search.h"
#include "solvers/graph/path_bound.h"

namespace stowage {

class BandSearch {
 public:
  // `answer` has the set to start from and a lower bound; both improve. All must outlive it.
  BandSearch(const CheckpointGraph& graph, const PathBound& bound, const FrontierSearch& search,
             CheckpointAnswer* answer);

  // Looks at about so many states. Fails as the token says.
  absl::Status Run(int64_t work, StopPoll* poll, const std::function<void(double)>& progress);

 private:
  struct Band {
    int64_t above;  // the largest segment is more than this, or none
    int64_t limit;  // and no more than that
    int64_t bound;  // no set of the band has a smaller objective
    int64_t found;  // the objective of its best known set
    int64_t work;   // that its last search took
  };

  int64_t best() const { return answer_->set.objective().value(); }
  // Searches a band for sets better than `known`.
  absl::Status Search(int64_t known, size_t width, Band* band, StopPoll* poll);
  // Takes the closed ones out, and puts the promising ones first.
  void Sort();

  const CheckpointGraph& graph_;
  const FrontierSearch& search_;
  CheckpointAnswer* const answer_;
  std::vector<Band> bands_;  // open ones
  int64_t work_left_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_BAND_SEARCH_H_
