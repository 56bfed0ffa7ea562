#include "solvers/transfer/internal/set_replay.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "solvers/model/units.h"

namespace stowage {
namespace {

// One half of a replay: ops 0..n-1 in order, each starting as soon as the one before it has ended
// and the offloads so far have left memory for it.
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
