// What the last stages of a chain cost at least beyond their ideal time. Internal to solvers/joint.
//
// The moments and kept stages of solvers/plan/lower_bound.h, for stages i..L+1 beside what is held of
// those before: at the moment that needs most, stages that are neither recomputed nor away are held.
// What is recomputed costs a forward; what is away takes the link there and back, beside the time
// that these stages take. So of the bytes in excess any share y is recomputed, and the time is at
// least the larger of both.
#ifndef STOWAGE_SOLVERS_JOINT_SUFFIX_BOUND_H_
#define STOWAGE_SOLVERS_JOINT_SUFFIX_BOUND_H_

#include <cstdint>
#include <vector>

#include "solvers/joint/link_costs.h"
#include "solvers/model/chain.h"

namespace stowage {

class SuffixBound {
  // Stages recomputed so far, those that cost least per byte first.
  struct Recomputed {
    double bytes;
    double time;
  };

 public:
  // O(L^2 log L) time, O(L^2) memory.
  SuffixBound(const Chain& chain, const LinkCosts& link, int64_t memory);

  // The most that one for so many stages, the loss included, takes, but for O(L).
  static int64_t SizeBytes(int64_t stages) {
    return stages * (stages + 1) / 2 * static_cast<int64_t>(sizeof(Recomputed));
  }

  // Of stages i..L+1, in ns: beside `held` bytes of the stages before, with copies of `backlog` ns
  // still to be made, and `host` bytes that may still be taken there.
  double Least(int i, int64_t held, double backlog, int64_t host) const;

 private:
  struct Suffix {
    int64_t need = 0;                    // bytes at the moment that needs most
    double ideal = 0;                    // time of the stages
    std::vector<Recomputed> recomputed;  // from nothing on
  };

  void Fill(const Chain& chain, int i, Suffix* suffix) const;

  int64_t memory_;
  double per_byte_;  // out and in
  std::vector<Suffix> suffixes_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_JOINT_SUFFIX_BOUND_H_
