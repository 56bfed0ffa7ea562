// Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost": segments that keep only their
// input and are recomputed whole, the last one too.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/chain/segmented_solver.h"
#include "solvers/chain/solvers.h"

namespace stowage {
namespace {

// The parameter of store-all.
constexpr int64_t kStoreAll = 0;

// Adds the candidate if its stages may all be recomputed.
bool Evaluate(const TailPeaks& tails, const SegmentEnds& ends, SegmentedCost* cost) {
  SegmentedCosts costs(tails);
  for (const int end : ends) {
    if (!costs.Add(end)) return false;
  }
  *cost = costs.Cost();
  return true;
}

class Chen : public SegmentedSolver {
 protected:
  // Store-all, and every parameter's segments.
  absl::StatusOr<std::vector<Candidate>> CandidatesOf(const Chain& chain,
                                                      const std::vector<int64_t>& parameters,
                                                      const SolveOptions& options) const {
    const TailPeaks tails(chain);
    std::vector<Candidate> candidates = {{kStoreAll, SegmentedCosts(tails).Cost()}};
    StopPoll poll(options.stop);
    for (size_t i = 0; i < parameters.size(); ++i) {
      absl::Status status = poll.Spend(16 * int64_t{chain.length()});
      if (!status.ok()) return status;
      SegmentedCost cost;
      if (!Evaluate(tails, Segments(chain, parameters[i]), &cost)) continue;
      candidates.push_back({parameters[i], cost});
      if (options.progress) {
        options.progress(static_cast<double>(i + 1) / static_cast<double>(parameters.size()));
      }
    }
    return candidates;
  }
};

class ChenSqrt final : public Chen {
 public:
  const SolverInfo& info() const override { return info_; }

 protected:
  absl::StatusOr<std::vector<Candidate>> Candidates(const Chain& chain,
                                                    const SolveOptions& options) const override {
    const double root = std::sqrt(static_cast<double>(chain.length()));
    return CandidatesOf(chain, {std::lround(root)}, options);
  }

  // Segments of equal numbers of stages, as far as that goes: the parameter is how many.
  SegmentEnds Segments(const Chain& chain, int64_t parameter) const override {
    SegmentEnds ends;
    for (int64_t i = 1; i <= parameter; ++i) {
      ends.push_back(static_cast<int>(i * chain.length() / parameter));
    }
    return ends;
  }

  std::string Describe(int64_t parameter) const override {
    return absl::StrCat(parameter, " segments");
  }

 private:
  const SolverInfo info_ = {"chen_sqrt",
                            "sqrt(L) segments of equal length, all recomputed (Chen et al. 2016)",
                            "plain training, or recomputing sqrt(L) segments of equal length"};
};

class ChenGreedy final : public Chen {
 public:
  const SolverInfo& info() const override { return info_; }

 protected:
  // A geometric grid of bounds from the largest stage to the whole chain, each different
  // segmentation once.
  absl::StatusOr<std::vector<Candidate>> Candidates(const Chain& chain,
                                                    const SolveOptions& options) const override {
    int64_t largest = 1, total = 0;
    for (int l = 1; l <= chain.length(); ++l) {
      largest = std::max(largest, chain.stage(l).saved.value());
      total += chain.stage(l).saved.value();
    }
    total = std::max(total, largest);
    // Roots and products round alike on all machines; powers may not.
    double root = static_cast<double>(total) / static_cast<double>(largest);
    for (int grid = kGrid; grid > 1; grid /= 2) root = std::sqrt(root);
    std::vector<int64_t> bounds;
    SegmentEnds before;
    StopPoll poll(options.stop);
    double bound = static_cast<double>(largest);
    for (int i = 0; i <= kGrid; ++i, bound *= root) {
      absl::Status status = poll.Spend(16 * int64_t{chain.length()});
      if (!status.ok()) return status;
      const int64_t bytes = i == kGrid ? total : static_cast<int64_t>(bound);
      SegmentEnds ends = Segments(chain, bytes);
      if (ends == before) continue;
      bounds.push_back(bytes);
      before = std::move(ends);
    }
    return CandidatesOf(chain, bounds, options);
  }

  // The paper's Algorithm 3: a segment ends with the stage at which what it would save exceeds the
  // bound, which is the parameter.
  SegmentEnds Segments(const Chain& chain, int64_t parameter) const override {
    SegmentEnds ends;
    if (parameter == kStoreAll) return ends;
    int64_t held = 0;
    for (int l = 1; l <= chain.length(); ++l) {
      held += chain.stage(l).saved.value();
      if (held <= parameter && l < chain.length()) continue;
      ends.push_back(l);
      held = 0;
    }
    return ends;
  }

  std::string Describe(int64_t parameter) const override {
    return absl::StrCat("segments that end when they would save more than ", parameter, " bytes");
  }

 private:
  static constexpr int kGrid = 256;  // a power of two
  const SolverInfo info_ = {
      "chen_greedy", "segments by a bound on their memory, all recomputed (Chen et al. 2016)",
      "plain training, or recomputing segments that end at a bound, for a grid of bounds"};
};

}  // namespace

const ChainSolver& ChenSqrtSolver() {
  static const ChenSqrt* const kSolver = new ChenSqrt;
  return *kSolver;
}

const ChainSolver& ChenGreedySolver() {
  static const ChenGreedy* const kSolver = new ChenGreedy;
  return *kSolver;
}

}  // namespace stowage
