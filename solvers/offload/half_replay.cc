#include "solvers/offload/half_replay.h"

#include <algorithm>
#include <cstddef>

namespace stowage {
namespace {

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

}  // namespace

std::optional<HalfTimeline> ReplayHalf(const OffloadProblem& problem, const OffloadSet& set,
                                       Half half) {
  return Loop(problem, set, half).Run();
}

}  // namespace stowage
