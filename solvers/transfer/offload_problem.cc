#include "solvers/transfer/offload_problem.h"

#include <algorithm>
#include <cstddef>
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

}  // namespace stowage
