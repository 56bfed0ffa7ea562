#include "solvers/plan/communication_stream.h"

#include <algorithm>

#include "absl/status/status.h"

namespace stowage {

absl::StatusOr<StreamSpan> CommunicationStream::Start(const TensorUses& uses, Nanos now, Nanos time,
                                                      Bytes kept) {
  StreamSpan span;
  span.start = ops_.empty() ? now : std::max(now, ops_.back().end);
  span.end = span.start + time;
  if (span.end.value() >= kMaxTotal) {
    return absl::InvalidArgumentError("the communications overflow");
  }
  ops_.push_back({span.end, kept});
  for (const TensorUse& use : uses) {
    if (use.tensor >= last_use_.size()) last_use_.resize(use.tensor + 1);
    LastUse& last = last_use_[use.tensor];
    (use.writes ? last.writer : last.reader) = ops_.size();
  }
  return span;
}

CommunicationStream::Ended CommunicationStream::WaitFor(const TensorUses& uses) {
  size_t last = 0;
  for (const TensorUse& use : uses) {
    if (use.tensor >= last_use_.size()) continue;
    const LastUse& by = last_use_[use.tensor];
    last = std::max({last, by.writer, use.writes ? by.reader : 0});
  }
  return WaitForFirst(last);
}

CommunicationStream::Ended CommunicationStream::WaitForFirst(size_t count) {
  Ended ended;
  for (; ended_ < count; ++ended_) {
    ended.end = ops_[ended_].end;
    ended.kept += ops_[ended_].kept;
  }
  return ended;
}

}  // namespace stowage
