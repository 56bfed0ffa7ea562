// Offloading activations to host memory while a chain is trained: Problem 1 of Beaumont et al. 2020, in bytes and
// nanoseconds (algorithms.md: the model, and what a chain is in it).
//
// Ops 0..n-1 run forward, then n-1..0 backward. Forward i makes activation i+1 from activation i; backward i needs
// both and drops i+1 (the last one drops 0, too). Between the two an activation may be on the host. Gradients are not
// moved.
#ifndef STOWAGE_SOLVERS_TRANSFER_OFFLOAD_PROBLEM_H_
#define STOWAGE_SOLVERS_TRANSFER_OFFLOAD_PROBLEM_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"

namespace stowage {

struct OffloadOp {
  Nanos forward_time;
  Nanos backward_time;
  Bytes forward_need;   // beside activations 0..i+1, while forward i runs
  Bytes backward_need;  // the same of backward i
};

struct OffloadSpec {
  std::vector<OffloadOp> ops;      // 0..n-1
  std::vector<Bytes> activations;  // 0..n
  TransferModel link;
  Bytes memory;
};

// Activations to offload, ascending. They leave in this order and come back in the opposite one.
// Hence all have left before the first comes back, and a full-duplex link gains nothing: the order
// is what Lemma 3 allows without loss on a half-duplex link whose copies can be interrupted.
using OffloadSet = std::vector<int>;

// Immutable after Create, hence safe to share between threads.
class OffloadProblem {
 public:
  // INVALID_ARGUMENT made by FieldError: no ops, other than one activation more than ops, negative
  // sizes or times, a link that ValidateTransferModel refuses, sums of sizes beyond kMaxTotal or of
  // all times and copies beyond kMaxTimeTotal. O(n).
  static absl::StatusOr<OffloadProblem> Create(OffloadSpec spec);

  // Number of ops, n. Activations 0..n-1 may be offloaded; activation n is needed at once.
  int size() const { return static_cast<int>(spec_.ops.size()); }
  const OffloadOp& op(int i) const { return spec_.ops[static_cast<size_t>(i)]; }
  Bytes activation(int i) const { return spec_.activations[static_cast<size_t>(i)]; }
  Bytes memory() const { return spec_.memory; }
  const TransferModel& link() const { return spec_.link; }
  const OffloadSpec& spec() const { return spec_; }

  Nanos OffloadTime(int i) const { return CopyTime(spec_.link.to_host, activation(i)); }
  Nanos PrefetchTime(int i) const { return CopyTime(spec_.link.to_device, activation(i)); }

  // Sum of activations 0..i-1, for i in 0..n+1.
  Bytes prefix(int i) const { return prefix_[static_cast<size_t>(i)]; }
  // Most memory that op i needs beside the activations, forward or backward.
  Bytes need(int i) const;

  // M_peak: device memory without offloading.
  Bytes peak() const { return peak_; }
  // What must be offloaded at least: peak - memory, or 0 (Proposition 2).
  Bytes overflow_bytes() const { return std::max(peak_ - memory(), Bytes(0)); }
  // Least memory in which everything can be trained, whatever the host memory: with every
  // activation offloaded.
  Bytes least_memory() const { return least_memory_; }
  // Sum of all forward and backward times.
  Nanos ideal_time() const { return ideal_time_; }
  // Proposition 3, with latencies: the ideal time, or the overflow out and back. What is on the host during
  // the op of the peak left before it and returns after, so it holds in full duplex, too. Of any
  // schedule that recomputes nothing.
  Nanos LowerBound() const;

  // Whether every op fits once the set has left, and the host has memory for it: then, and only then, the set
  // has a schedule. O(n).
  bool Admits(const OffloadSet& set) const;
  Bytes BytesOf(const OffloadSet& set) const;

 private:
  explicit OffloadProblem(OffloadSpec spec);

  OffloadSpec spec_;
  std::vector<Bytes> prefix_;
  Bytes peak_;
  Bytes least_memory_;
  Nanos ideal_time_;
};

// When ops and copies run, and what memory that takes.
struct TimedCopy {
  int activation = 0;
  Nanos start;
  Nanos end;

  friend bool operator==(const TimedCopy& a, const TimedCopy& b) {
    return a.activation == b.activation && a.start == b.start && a.end == b.end;
  }
};

// The seam to schedules: a wait for an offload belongs before the first op that starts at its end or
// later, a wait for a prefetch before the backward of its activation.
struct OffloadTimeline {
  std::vector<Nanos> forward_start;   // by op
  std::vector<Nanos> backward_start;  // by op
  std::vector<TimedCopy> offloads;    // in the order in which they run
  std::vector<TimedCopy> prefetches;
  Nanos makespan;
  Bytes peak;       // of device memory
  Bytes host_peak;  // of host memory
};

// Device memory at its highest, at every instant and between ops that take no time: where a release,
// an op and a prefetch fall on one instant, they come in this order. The copies of an activation are
// one offload and one later prefetch. O(n log n).
Bytes PeakOf(const OffloadProblem& problem, const OffloadTimeline& timeline);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_OFFLOAD_PROBLEM_H_
