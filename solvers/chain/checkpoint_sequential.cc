#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/segmented_solver.h"
#include "solvers/chain/solvers.h"

namespace stowage {
namespace {

class CheckpointSequential final : public SegmentedSolver {
 public:
  const SolverInfo& info() const override { return info_; }

 protected:
  // All counts that give segments of the same size share a walk over the chain: 2 sqrt(L) walks.
  absl::StatusOr<std::vector<Candidate>> Candidates(const Chain& chain,
                                                    const SolveOptions& options) const override {
    const TailPeaks tails(chain);
    const int stages = chain.length();
    std::vector<Candidate> candidates;
    StopPoll poll(options.stop);
    for (int k = 1; k <= stages;) {
      const int size = stages / k;
      const int last = stages / size;  // the most segments of this size
      absl::Status status = poll.Spend(16 * int64_t{stages});
      if (!status.ok()) return status;
      SegmentedCosts costs(tails);
      for (int segments = 1; segments <= last; ++segments) {
        if (segments > 1 && !costs.Add((segments - 1) * size)) break;
        if (segments >= k) candidates.push_back({segments, costs.Cost()});
      }
      k = last + 1;
      if (options.progress) options.progress(static_cast<double>(last) / stages);
    }
    return candidates;
  }

  SegmentEnds Segments(const Chain& chain, int64_t parameter) const override {
    return SequentialSegments(chain, static_cast<int>(parameter));
  }

  std::string Describe(int64_t parameter) const override {
    return absl::StrCat(parameter, " segments");
  }

 private:
  const SolverInfo info_ = {"checkpoint_sequential",
                            "equal segments that keep only their input, the last one kept whole",
                            "schedules that recompute segments of equal length, as many as may be"};
};

}  // namespace

const ChainSolver& CheckpointSequentialSolver() {
  static const CheckpointSequential* const kSolver = new CheckpointSequential;
  return *kSolver;
}

}  // namespace stowage
