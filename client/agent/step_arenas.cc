#include "client/agent/step_arenas.h"

#include <algorithm>
#include <utility>

namespace stowage {
namespace {

// Steps that differ from what was recorded, in a row, before they are recorded again; and recordings.
constexpr int kMostDepartures = 2;
constexpr int kMostRecordings = 3;

}  // namespace

Bytes RoomForRegion(const DeviceBudget& shared, Bytes beside, Bytes input) {
  Bytes known = input;
  for (const DeviceBudget::Item& item : shared.subtracted) {
    if (!item.reserve) known += item.bytes;
  }
  return std::max(Bytes(0), shared.device - std::max(beside, known));
}

StepArenas::StepArenas(const AgentOptions& options, EventSink* events)
    : events_(events),
      capacity_(static_cast<size_t>(std::max<int64_t>(options.max_shapes, 1))),
      options_(options.arena) {}

bool StepArenas::Create() {
  if (!used() || arena_ != nullptr) return used();
  absl::StatusOr<std::unique_ptr<StepArena>> arena = StepArena::Create(options_->region);
  if (arena.ok()) {
    arena_ = *std::move(arena);
  } else {
    GiveUp("", Bytes(0), std::string(arena.status().message()));
  }
  return arena.ok();
}

absl::StatusOr<StepReport> StepArenas::Run(
    const std::string& batch, const Digest& plan, const std::function<Bytes()>& room,
    const std::function<absl::StatusOr<StepReport>()>& step) {
  served_ = false;
  if (!Create()) return step();
  Steps* const steps = Find(batch, plan);
  absl::StatusOr<StepReport> report = [&] {
    const ArenaScope scope(arena_.get(), steps->kind);
    return step();
  }();
  // A step that failed has not asked for all that it would have.
  if (!report.ok()) return report;
  served_ = arena_->report().counts.served > 0;
  if (steps->planned) {
    Watch(batch, steps);
  } else {
    Prepare(batch, room(), steps);
  }
  return report;
}

StepArenas::Steps* StepArenas::Find(const std::string& batch, const Digest& plan) {
  if (steps_.size() >= capacity_ && steps_.count(batch) == 0) {
    arena_->Forget();
    steps_.clear();
  }
  Steps& steps = steps_[batch];
  if (steps.kind == 0 || steps.plan != plan) {
    arena_->Forget(steps.kind);
    steps = Steps();
    steps.kind = ++next_;
    steps.plan = plan;
  }
  return &steps;
}

void StepArenas::Prepare(const std::string& batch, Bytes room, Steps* steps) {
  ++steps->recordings;
  const absl::Status status = arena_->Prepare(room);
  if (!status.ok()) return GiveUp(batch, room, std::string(status.message()));
  steps->planned = true;
  const ArenaReport report = arena_->report();
  events_->Emit(
      ArenaEvent{batch, true, report.extent, report.live_peak, report.fragmentation, room, ""});
}

void StepArenas::Watch(const std::string& batch, Steps* steps) {
  const bool departed = arena_->report().counts.departed > 0;
  steps->departures = departed ? steps->departures + 1 : 0;
  if (steps->departures < kMostDepartures) return;
  if (steps->recordings >= kMostRecordings) {
    return GiveUp(batch, arena_->report().reserved, "steps differ from one to the next");
  }
  arena_->Forget(steps->kind);
  steps->planned = false;
  steps->departures = 0;
}

void StepArenas::GiveUp(const std::string& batch, Bytes room, const std::string& why) {
  const ArenaReport report = arena_ == nullptr ? ArenaReport() : arena_->report();
  given_up_ = true;
  arena_.reset();
  steps_.clear();
  events_->Emit(
      ArenaEvent{batch, false, report.extent, report.live_peak, report.fragmentation, room, why});
}

Bytes StepArenas::reserved() const {
  return arena_ == nullptr ? Bytes(0) : arena_->report().reserved;
}

void StepArenas::Describe(StepMemory* use) const {
  use->served = served_ && arena_ != nullptr;
  if (!use->served) return;
  use->extent = arena_->report().extent;
  use->fragmentation = arena_->report().fragmentation;
}

void StepArenas::Release() {
  if (arena_ != nullptr) arena_->Release();
}

}  // namespace stowage
