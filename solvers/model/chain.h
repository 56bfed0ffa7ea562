// A chain of stages 1..L and its loss, stage L+1: the planning problem of a sequential network.
//
// Sizes in bytes, times in nanoseconds. The accounting that gives the fields their meaning is the
// evaluator's, in solvers/schedule/evaluator.h. Immutable after Create, hence safe to share between
// threads.
#ifndef STOWAGE_SOLVERS_MODEL_CHAIN_H_
#define STOWAGE_SOLVERS_MODEL_CHAIN_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"

namespace stowage {

// What replays read comes first.
struct Stage {
  Nanos forward_time;   // u_f
  Nanos backward_time;  // u_b

  Bytes output;           // a: the output activation
  Bytes saved;            // a-bar: all that autograd saves, output included, input not; >= output
  Bytes output_gradient;  // delta: gradient of the output

  Bytes forward_saving_overhead;  // o_f+: beyond `saved` while a saving forward runs
  Bytes forward_overhead;         // o_f0: beyond `output` while a forward that does not save runs
  Bytes backward_overhead;  // o_b: beyond everything held while the backward runs, new gradient
                            // included

  // Nobody reads the output of a recompute that saves right before its backward: it ends at its last
  // saved tensor, and the output is never made. No time: not known, or the output itself is saved;
  // then it runs as every forward that saves. The overhead is beyond `saved` - `output`; none: output +
  // forward_saving_overhead.
  std::optional<Nanos> recompute_saving_time;  // <= forward_time
  std::optional<Bytes> recompute_saving_overhead;

  bool random = false;      // a recompute must see the same random state
  bool stateful = false;    // a recompute must not update state again
  bool collective = false;  // communicates: never recomputed
  bool must_keep = false;   // never recomputed, for the caller's own reason
  Bytes
      transient_parameters;  // gathered for the op and freed after it; inside the overheads already

  // What of `saved`, the output aside, is made of tensors that can go to host memory one by one, in
  // the order in which they are saved. Empty: not known, `saved` goes as a whole.
  std::vector<Bytes> saved_tensors;

  std::string name;     // label
  std::string op_kind;  // what it computes, part of the key

  static constexpr size_t kMaxSavedTensors = 65534;

  // Whether a schedule may run this forward a second time.
  bool recomputable() const { return !collective && !must_keep; }

  // The recompute right before the backward: its time, what it leaves, and what it takes beyond that
  // while it runs.
  bool stops() const { return recompute_saving_time.has_value(); }
  Nanos stopped_time() const { return recompute_saving_time.value_or(forward_time); }
  Bytes stopped_saved() const { return stops() ? saved - output : saved; }
  Bytes stopped_overhead() const {
    if (!stops()) return forward_saving_overhead;
    return recompute_saving_overhead.value_or(output + forward_saving_overhead);
  }

  // The parts of `saved` that can go singly: saved tensor k is part k, and the last part is the rest,
  // which holds the output. 0 where the tensors are not known.
  int parts() const {
    return saved_tensors.empty() ? 0 : static_cast<int>(saved_tensors.size()) + 1;
  }
  // Part k in 1..parts(). O(1), of the last one O(parts).
  Bytes part(int k) const;
};

// What Chain::Create takes. `loss` is stage L+1; left alone it costs nothing.
struct ChainSpec {
  std::string name;
  Bytes input;           // a^0; counts against the budget
  Bytes input_gradient;  // delta^0, left over at the end of the step; 0 if the input needs none
  std::vector<Stage> stages;
  Stage loss;
};

class Chain {
 public:
  static constexpr size_t kMaxStages = 100000;

  // Checks every rule of the contract (proto/stowage/v1/profile.proto): INVALID_ARGUMENT made by
  // FieldError otherwise.
  static absl::StatusOr<Chain> Create(ChainSpec spec);

  const std::string& name() const { return spec_.name; }

  // L, the loss not counted.
  int length() const { return static_cast<int>(spec_.stages.size()); }

  // Stage l in 1..L+1; L+1 is the loss.
  const Stage& stage(int l) const {
    return l <= length() ? spec_.stages[static_cast<size_t>(l) - 1] : spec_.loss;
  }

  // Size of a^l for l in 0..L+1.
  Bytes activation(int l) const { return l == 0 ? spec_.input : stage(l).output; }
  // Size of delta^l for l in 0..L+1.
  Bytes gradient(int l) const { return l == 0 ? spec_.input_gradient : stage(l).output_gradient; }

  // Sum of all forward and backward times, loss included: the step without a budget.
  Nanos ideal_time() const { return ideal_time_; }

  // Whether a recompute of some stage stops early (Stage::stops).
  bool stops() const { return stops_; }

  const ChainSpec& spec() const { return spec_; }

 private:
  explicit Chain(ChainSpec spec);

  ChainSpec spec_;
  Nanos ideal_time_;
  bool stops_ = false;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_CHAIN_H_
