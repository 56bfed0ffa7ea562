#include "solvers/plan/host_link.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stowage {

HostLink::HostLink(const TransferModel& transfers, size_t tensors)
    : transfers_(transfers), state_(tensors, State::kNone), end_(tensors) {}

absl::StatusOr<StreamSpan> HostLink::Start(Stream direction, size_t tensor, Bytes bytes,
                                           Nanos now) {
  const bool leaves = direction == Stream::kToHost;
  if (leaves && bytes > transfers_.host_memory - host_) {
    return absl::InvalidArgumentError(
        absl::StrCat("host memory of ", transfers_.host_memory.value(), " bytes has no room for ",
                     bytes.value(), " beside ", host_.value()));
  }
  Bytes& moved = leaves ? sent_ : fetched_;
  Nanos& free = free_[transfers_.full_duplex && !leaves ? 1 : 0];
  StreamSpan span;
  span.start = std::max(now, free);
  span.end = span.start + CopyTime(leaves ? transfers_.to_host : transfers_.to_device, bytes);
  // Each sum is of two numbers up to kMaxTotal, of which one is below it: no overflow before here.
  if (span.end.value() >= kMaxTotal || (moved + bytes).value() >= kMaxTotal) {
    return absl::InvalidArgumentError("the copies overflow");
  }
  moved += bytes;
  if (leaves) host_ += bytes;
  free = end_[tensor] = span.end;
  state_[tensor] = leaves ? State::kLeaving : State::kComing;
  return span;
}

Nanos HostLink::Wait(size_t tensor, Bytes bytes) {
  if (state_[tensor] == State::kLeaving) {
    state_[tensor] = State::kOnHost;
  } else {
    Drop(tensor, bytes);
  }
  return end_[tensor];
}

void HostLink::Drop(size_t tensor, Bytes bytes) {
  state_[tensor] = State::kNone;
  host_ -= bytes;
}

}  // namespace stowage
