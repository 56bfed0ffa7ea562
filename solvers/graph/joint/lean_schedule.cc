#include "solvers/graph/joint/lean_schedule.h"

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "solvers/offload/compute_trace.h"
#include "solvers/offload/moved_copies.h"
#include "solvers/plan/graph_simulate.h"

namespace stowage {
namespace {

// Copies may take twice as long as they were said to, wherever there is the time.
constexpr double kMargin = 1.0;

// By instruction: of the waits for offloads, after which their tensors are not read before they leave.
std::vector<size_t> EarliestWaits(const ComputeTrace& trace, const Schedule& schedule) {
  std::vector<size_t> step_at;  // in the schedule
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (!IsTransfer(schedule[i].op)) step_at.push_back(i);
  }
  std::map<std::pair<TensorKind, int>, int> last_read;
  for (const ComputeTrace::Tensor& tensor : trace.tensors) {
    last_read[{tensor.kind, tensor.stage}] = tensor.last_read;
  }
  std::vector<size_t> earliest(schedule.size(), 0);
  for (size_t i = 0; i < schedule.size(); ++i) {
    earliest[i] = i;
    if (schedule[i].op != Op::kOffloadWait) continue;
    const auto read = last_read.find({schedule[i].tensor, schedule[i].stage});
    if (read == last_read.end()) continue;
    earliest[i] = read->second < 0 ? 0 : step_at[static_cast<size_t>(read->second)] + 1;
  }
  return earliest;
}

}  // namespace

Schedule LeanSchedule(const Graph& graph, const TransferModel& link, const Schedule& compute,
                      Schedule schedule) {
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> before = SimulateGraph(graph, schedule, link, &timeline);
  const absl::StatusOr<ComputeTrace> trace = TraceOf(graph, compute);
  if (!before.ok() || !trace.ok()) return schedule;
  const auto take = [&](Schedule changed) {
    std::vector<TimelinePoint> changed_timeline;
    const absl::StatusOr<Simulation> after = SimulateGraph(graph, changed, link, &changed_timeline);
    const bool lean =
        after.ok() && after->makespan <= before->makespan && after->peak <= before->peak;
    if (!lean) return;
    schedule = std::move(changed);
    timeline = std::move(changed_timeline);
  };
  take(WithEarlyWaits(schedule, timeline, EarliestWaits(*trace, schedule), kMargin));
  take(WithLatePrefetches(schedule, timeline, link.full_duplex, kMargin));
  return schedule;
}

}  // namespace stowage
