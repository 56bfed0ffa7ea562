#include "solvers/transfer/offload_problem.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"
#include "solvers/model/units.h"

namespace stowage {
namespace {

// Adds a value to a sum that has to stay below a limit. Names are made for errors alone: `field` makes one.
template <class Field>
absl::Status Add(const Field& field, int64_t value, int64_t limit, const char* what, int64_t* sum) {
  if (value < 0) return FieldError(field(), value, "must be >= 0");
  if (value >= limit - *sum) {
    return FieldError(field(), value, absl::StrCat("makes ", what, " reach or exceed ", limit));
  }
  *sum += value;
  return absl::OkStatus();
}

// Every op's memory is a sum of activations and one need.
absl::Status CheckSizes(const OffloadSpec& spec) {
  static constexpr char kWhat[] = "the sum of the activations and what one op needs";
  int64_t sum = 0;
  for (size_t i = 0; i < spec.activations.size(); ++i) {
    const auto field = [i] { return absl::StrCat("offload.activations[", i, "]"); };
    absl::Status status = Add(field, spec.activations[i].value(), kMaxTotal, kWhat, &sum);
    if (!status.ok()) return status;
  }
  for (size_t i = 0; i < spec.ops.size(); ++i) {
    const auto forward = [i] { return absl::StrCat("offload.ops[", i, "].forward_need"); };
    const auto backward = [i] { return absl::StrCat("offload.ops[", i, "].backward_need"); };
    int64_t with_forward = sum, with_backward = sum;
    absl::Status status =
        Add(forward, spec.ops[i].forward_need.value(), kMaxTotal, kWhat, &with_forward);
    if (status.ok()) {
      status = Add(backward, spec.ops[i].backward_need.value(), kMaxTotal, kWhat, &with_backward);
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status CheckTimes(const OffloadSpec& spec) {
  static constexpr char kWhat[] = "the sum of all times and copies";
  int64_t sum = 0;
  const auto add = [&sum](const auto& field, Nanos time) {
    return Add(field, time.value(), kMaxTimeTotal, kWhat, &sum);
  };
  absl::Status status;
  for (size_t i = 0; i < spec.ops.size() && status.ok(); ++i) {
    const auto forward = [i] { return absl::StrCat("offload.ops[", i, "].forward_time"); };
    const auto backward = [i] { return absl::StrCat("offload.ops[", i, "].backward_time"); };
    const auto copy = [i] { return absl::StrCat("offload.activations[", i, "].copy_time"); };
    status = add(forward, spec.ops[i].forward_time);
    if (status.ok()) status = add(backward, spec.ops[i].backward_time);
    if (status.ok()) status = add(copy, CopyTime(spec.link.to_host, spec.activations[i]));
    if (status.ok()) status = add(copy, CopyTime(spec.link.to_device, spec.activations[i]));
  }
  return status;
}

}  // namespace

absl::StatusOr<OffloadProblem> OffloadProblem::Create(OffloadSpec spec) {
  absl::Status status = ValidateTransferModel(spec.link);
  if (!status.ok()) return status;
  if (spec.ops.empty()) return FieldError("offload.ops", "[]", "must have at least one op");
  if (spec.activations.size() != spec.ops.size() + 1) {
    return FieldError("offload.activations", static_cast<int64_t>(spec.activations.size()),
                      absl::StrCat("must be one more than the ops (", spec.ops.size(), ")"));
  }
  if (spec.memory < Bytes(0) || spec.memory.value() > kMaxTotal) {
    return FieldError("offload.memory", spec.memory.value(),
                      absl::StrCat("must be in [0, ", kMaxTotal, "]"));
  }
  status = CheckSizes(spec);
  if (status.ok()) status = CheckTimes(spec);
  if (!status.ok()) return status;
  return OffloadProblem(std::move(spec));
}

OffloadProblem::OffloadProblem(OffloadSpec spec) : spec_(std::move(spec)) {
  prefix_.reserve(spec_.activations.size() + 1);
  prefix_.push_back(Bytes(0));
  for (const Bytes size : spec_.activations) prefix_.push_back(prefix_.back() + size);
  for (int i = 0; i < size(); ++i) {
    peak_ = std::max(peak_, prefix(i + 2) + need(i));
    least_memory_ = std::max(least_memory_, activation(i) + activation(i + 1) + need(i));
    ideal_time_ += op(i).forward_time + op(i).backward_time;
  }
}

Bytes OffloadProblem::need(int i) const {
  return std::max(op(i).forward_need, op(i).backward_need);
}

Nanos OffloadProblem::LowerBound() const {
  // More than all that may leave is asked for only where nothing fits.
  const Bytes moved = std::min(overflow_bytes(), prefix(size()));
  if (moved == Bytes(0)) return ideal_time_;
  return std::max(ideal_time_,
                  CopyTime(spec_.link.to_host, moved) + CopyTime(spec_.link.to_device, moved));
}

bool OffloadProblem::Admits(const OffloadSet& set) const {
  if (BytesOf(set) > spec_.link.host_memory) return false;
  Bytes on_host;
  size_t next = 0;
  for (int i = 0; i < size(); ++i) {
    // Activation i itself is read by op i: only what is before it can be on the host.
    for (; next < set.size() && set[next] < i; ++next) on_host += activation(set[next]);
    if (prefix(i + 2) - on_host + need(i) > memory()) return false;
  }
  return true;
}

Bytes OffloadProblem::BytesOf(const OffloadSet& set) const {
  Bytes sum;
  for (const int i : set) sum += activation(i);
  return sum;
}

namespace {

enum class EventRank { kRelease, kOp, kTake };

// A change of what is held. Ops raise it while they run and leave it changed.
struct Event {
  Nanos time;
  EventRank rank;
  int order;  // of ops: twice the place in program order, odd at the end
  Bytes change;

  friend bool operator<(const Event& a, const Event& b) {
    return std::tie(a.time, a.rank, a.order) < std::tie(b.time, b.rank, b.order);
  }
};

}  // namespace

Bytes PeakOf(const OffloadProblem& problem, const OffloadTimeline& timeline) {
  const int n = problem.size();
  const auto forward_end = [&](int i) {
    return timeline.forward_start[static_cast<size_t>(i)] + problem.op(i).forward_time;
  };
  std::vector<Event> events;
  events.reserve(static_cast<size_t>(4 * n) + 2 * timeline.offloads.size());
  // What op i gives back when its forward ends: its activation, if it is on the host by then.
  std::vector<Bytes> given(static_cast<size_t>(n));
  for (const TimedCopy& copy : timeline.offloads) {
    const Bytes size = problem.activation(copy.activation);
    if (copy.end <= forward_end(copy.activation)) {
      given[static_cast<size_t>(copy.activation)] = size;
    } else {
      events.push_back({copy.end, EventRank::kRelease, 0, Bytes(0) - size});
    }
  }
  for (const TimedCopy& copy : timeline.prefetches) {
    events.push_back({copy.start, EventRank::kTake, 0, problem.activation(copy.activation)});
  }
  for (int i = 0; i < n; ++i) {
    const OffloadOp& op = problem.op(i);
    const Nanos forward = timeline.forward_start[static_cast<size_t>(i)];
    const Nanos backward = timeline.backward_start[static_cast<size_t>(i)];
    const Bytes made = problem.activation(i + 1);
    const int back = 2 * n - 1 - i;
    events.push_back({forward, EventRank::kOp, 2 * i, made + op.forward_need});
    events.push_back({forward + op.forward_time, EventRank::kOp, 2 * i + 1,
                      Bytes(0) - op.forward_need - given[static_cast<size_t>(i)]});
    events.push_back({backward, EventRank::kOp, 2 * back, op.backward_need});
    events.push_back({backward + op.backward_time, EventRank::kOp, 2 * back + 1,
                      Bytes(0) - op.backward_need - made});
  }
  std::sort(events.begin(), events.end());
  Bytes held = problem.activation(0);
  Bytes peak = held;
  for (const Event& event : events) {
    held += event.change;
    peak = std::max(peak, held);
  }
  return peak;
}

namespace {

// One half of a replay: ops 0..n-1 in order, each starting as soon as the one before it has ended
// and the offloads so far have left memory for it. Internal to solvers/transfer.
enum class Half {
  kForward,
  kBackward,  // in reversed time: prefetches are offloads then
};

struct HalfCopy {
  Nanos start;
  Nanos end;
  Nanos release;  // of its memory
};

struct HalfTimeline {
  std::vector<Nanos> start;      // by op
  std::vector<HalfCopy> copies;  // by place in the set
  Nanos end;                     // of the last op
};

class Loop {
 public:
  Loop(const OffloadProblem& problem, const OffloadSet& set, Half half)
      : problem_(problem), set_(set), half_(half), held_(problem.activation(0)) {}

  std::optional<HalfTimeline> Run() {
    timeline_.start.reserve(static_cast<size_t>(problem_.size()));
    timeline_.copies.reserve(set_.size());
    for (int i = 0; i < problem_.size(); ++i) {
      if (!Start(i)) return std::nullopt;
    }
    timeline_.end = time_;
    return std::move(timeline_);
  }

 private:
  bool Start(int i) {
    const OffloadOp& op = problem_.op(i);
    const bool forward = half_ == Half::kForward;
    const Bytes need = problem_.activation(i + 1) + (forward ? op.forward_need : op.backward_need);
    const Nanos ready = time_;  // of the forward's input, which is made by the op before it
    while (held_ + need > problem_.memory()) {
      if (released_ == timeline_.copies.size()) return false;
      time_ = std::max(time_, timeline_.copies[released_].release);
      held_ -= problem_.activation(set_[released_]);
      ++released_;
    }
    timeline_.start.push_back(time_);
    time_ += forward ? op.forward_time : op.backward_time;
    held_ += problem_.activation(i + 1);
    if (timeline_.copies.size() < set_.size() && set_[timeline_.copies.size()] == i) {
      Copy(i, forward ? ready : time_);
    }
    return true;
  }

  // The copy of activation i, whose op ends now; the link takes it from `ready` on.
  void Copy(int i, Nanos ready) {
    HalfCopy copy;
    copy.start = std::max(link_free_, ready);
    copy.end =
        copy.start + (half_ == Half::kForward ? problem_.OffloadTime(i) : problem_.PrefetchTime(i));
    copy.release = std::max(copy.end, time_);
    link_free_ = copy.end;
    timeline_.copies.push_back(copy);
  }

  const OffloadProblem& problem_;
  const OffloadSet& set_;
  const Half half_;
  HalfTimeline timeline_;
  Bytes held_;  // as far as releases have been needed
  size_t released_ = 0;
  Nanos time_;
  Nanos link_free_;
};

// Nothing if some op never fits. The host's memory is not looked at. O(n).
std::optional<HalfTimeline> ReplayHalf(const OffloadProblem& problem, const OffloadSet& set,
                                       Half half) {
  return Loop(problem, set, half).Run();
}

// Finds the least idle time between the halves. Times of the forward half count from its start,
// leads of the backward half from its start backwards: a prefetch with lead d starts d before the
// first backward.
class Stitch {
 public:
  Stitch(const OffloadProblem& problem, const OffloadSet& set, const HalfTimeline& forward,
         const HalfTimeline& backward)
      : problem_(problem), set_(set), forward_(forward), backward_(backward) {}

  Nanos LeastIdle() {
    if (set_.empty()) return Nanos(0);
    first_lead_ = Lead(set_.size() - 1);
    Require(forward_.copies.back().end, first_lead_);
    ForwardsBesidePrefetches();
    BackwardsBesideOffloads();
    return idle_;
  }

 private:
  Nanos Lead(size_t place) const { return backward_.copies[place].end - backward_.end; }

  // What happens `lead` before the first backward must not happen before `time`.
  void Require(Nanos time, Nanos lead) { idle_ = std::max(idle_, time + lead - forward_.end); }

  // Prefetches start after the last offload: a forward that they run beside holds, of the set, its
  // own input alone.
  void ForwardsBesidePrefetches() {
    Bytes on_host;
    size_t next = 0;
    for (int i = 0; i < problem_.size(); ++i) {
      for (; next < set_.size() && set_[next] < i; ++next)
        on_host += problem_.activation(set_[next]);
      const OffloadOp& op = problem_.op(i);
      const Bytes free_bytes =
          problem_.memory() - (problem_.prefix(i + 2) - on_host + op.forward_need);
      // The prefetches after those that find memory wait for the end of this forward.
      Bytes prefetched;
      for (size_t place = set_.size(); place-- > 0;) {
        prefetched += problem_.activation(set_[place]);
        if (prefetched > free_bytes) {
          Require(forward_.start[static_cast<size_t>(i)] + op.forward_time, Lead(place));
          break;
        }
        if (forward_.start[static_cast<size_t>(i)] + op.forward_time + Lead(place) <=
            forward_.end + idle_) {
          break;  // it and those after it start after this forward anyway
        }
      }
    }
  }

  // Before the first prefetch a backward needs so many of the offloads to have ended.
  void BackwardsBesideOffloads() {
    for (int i = problem_.size() - 1; i >= 0; --i) {
      const OffloadOp& op = problem_.op(i);
      // The lead of its start: reversed time ends it where the backward half starts it.
      const Nanos lead = backward_.start[static_cast<size_t>(i)] + op.backward_time - backward_.end;
      if (lead <= first_lead_) return;
      Bytes over = problem_.prefix(i + 2) + op.backward_need - problem_.memory();
      for (size_t place = 0; over > Bytes(0) && place < set_.size(); ++place) {
        over -= problem_.activation(set_[place]);
        if (over <= Bytes(0)) Require(forward_.copies[place].release, lead);
      }
    }
  }

  const OffloadProblem& problem_;
  const OffloadSet& set_;
  const HalfTimeline& forward_;
  const HalfTimeline& backward_;
  Nanos first_lead_;
  Nanos idle_;
};

OffloadTimeline Join(const OffloadSet& set, const HalfTimeline& forward,
                     const HalfTimeline& backward, Nanos idle, const OffloadProblem& problem) {
  OffloadTimeline timeline;
  timeline.makespan = forward.end + idle + backward.end;
  timeline.forward_start = forward.start;
  timeline.backward_start.reserve(forward.start.size());
  timeline.offloads.reserve(set.size());
  timeline.prefetches.reserve(set.size());
  for (int i = 0; i < problem.size(); ++i) {
    timeline.backward_start.push_back(timeline.makespan - backward.start[static_cast<size_t>(i)] -
                                      problem.op(i).backward_time);
  }
  for (size_t place = 0; place < set.size(); ++place) {
    timeline.offloads.push_back(
        {set[place], forward.copies[place].start, forward.copies[place].end});
  }
  for (size_t place = set.size(); place-- > 0;) {
    timeline.prefetches.push_back({set[place], timeline.makespan - backward.copies[place].end,
                                   timeline.makespan - backward.copies[place].start});
  }
  timeline.peak = PeakOf(problem, timeline);
  timeline.host_peak = problem.BytesOf(set);
  return timeline;
}

}  // namespace

std::optional<OffloadTimeline> ReplaySet(const OffloadProblem& problem, const OffloadSet& set) {
  if (problem.BytesOf(set) > problem.link().host_memory) return std::nullopt;
  std::optional<HalfTimeline> forward = ReplayHalf(problem, set, Half::kForward);
  if (!forward) return std::nullopt;
  std::optional<HalfTimeline> backward = ReplayHalf(problem, set, Half::kBackward);
  if (!backward) return std::nullopt;
  const Nanos idle = Stitch(problem, set, *forward, *backward).LeastIdle();
  return Join(set, *forward, *backward, idle, problem);
}

}  // namespace stowage
