// Serves an agent's steps by plans from one reserved region (client/torch/memory/step_arena.h): the first step of
// a plan on a shape of batch is recorded, those that follow are served.
#ifndef STOWAGE_CLIENT_AGENT_STEP_ARENAS_H_
#define STOWAGE_CLIENT_AGENT_STEP_ARENAS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/agent/agent_options.h"
#include "client/agent/device_budget.h"
#include "client/agent/event_sink.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/memory/step_arena.h"
#include "solvers/model/digest.h"
#include "solvers/model/units.h"

namespace stowage {

// What the latest step by a plan took of the device, allocated and reserved, and what there was for it.
struct StepMemory {
  Bytes budget;  // of the plan
  Bytes peak;    // of the step, allocated: StepReport::peak
  // The most that was reserved beside the blocks of what was live before it, the input not among these: the step's own, and
  // what its allocator kept between.
  Bytes reserved_peak;
  Bytes device_limit;   // DeviceLimit::memory; 0 where none is given
  Bytes device_peak;    // the most that was reserved at all, the job's other tensors included
  bool served = false;  // from a region
  Bytes extent;         // of which its blocks take so much
  Bytes fragmentation;  // of the extent, used at no time
};

// What a region may take of a device, where so much is reserved beside it, now: its memory less that or
// less what `shared` subtracts, if that is more, but for the reserve, which is for what is lost to fragmentation,
// too. `input` is the batch's.
Bytes RoomForRegion(const DeviceBudget& shared, Bytes beside, Bytes input);

// Not thread-safe.
class StepArenas {
 public:
  // `events` outlives it. Without options.arena steps allocate as ever.
  StepArenas(const AgentOptions& options, EventSink* events);

  // Makes `step`, one of the plan on batches of that shape. A region that would take more than `room()`,
  // which is asked after a step that was recorded, is not made: ArenaEvent says so, and until TryAgain all
  // steps allocate as ever. So it is where steps keep on differing from those that were recorded.
  absl::StatusOr<StepReport> Run(const std::string& batch, const Digest& plan,
                                 const std::function<Bytes()>& room,
                                 const std::function<absl::StatusOr<StepReport>()>& step);

  bool used() const { return options_.has_value() && !given_up_; }
  // The region's bytes now.
  Bytes reserved() const;
  // Into `use`, what there is to say of the latest Run.
  void Describe(StepMemory* use) const;

  // Another budget was asked for: what did not fit may now.
  void TryAgain() { given_up_ = false; }
  // Makes room for what is no step by a plan: the next of those takes the region back.
  void Release();

 private:
  struct Steps {
    StepArena::Kind kind = 0;
    Digest plan;
    bool planned = false;
    int recordings = 0;
    int departures = 0;  // served steps in a row that differed from what was recorded
  };

  bool Create();
  Steps* Find(const std::string& batch, const Digest& plan);
  void Prepare(const std::string& batch, Bytes room, Steps* steps);
  void Watch(const std::string& batch, Steps* steps);
  void GiveUp(const std::string& batch, Bytes room, const std::string& why);

  EventSink* const events_;
  const size_t capacity_;
  const std::optional<ArenaOptions> options_;
  bool given_up_ = false;             // steps allocate as ever
  std::unique_ptr<StepArena> arena_;  // null before the first step, and once it is given up
  std::map<std::string, Steps> steps_;
  StepArena::Kind next_ = 0;
  bool served_ = false;  // the latest Run
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_AGENT_STEP_ARENAS_H_
