#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"
#include "solvers/pipeline/pipeline.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"

namespace stowage {
namespace {

constexpr int64_t kMostDevices = 1024;
constexpr int64_t kMostChunks = 64;
constexpr int64_t kMostMicrobatches = 65536;
constexpr int64_t kMostTasks = int64_t{1} << 20;

absl::Status CheckRange(const char* field, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return FieldError(field, value, absl::StrCat("must be in [1, ", most, "]"));
}

// The k-th forward, or backward, of a device: microbatches go through its first chunk in groups of D, then through the
// next; backwards begin at the last chunk.
PipelineTask KthTask(const PipelineShape& shape, int device, bool forward, int k) {
  const int in_group = k % (shape.devices * shape.chunks);
  const int group = k / (shape.devices * shape.chunks);
  const int chunk = in_group / shape.devices;
  return {forward, device + (forward ? chunk : shape.chunks - 1 - chunk) * shape.devices,
          group * shape.devices + in_group % shape.devices};
}

std::vector<PipelineTask> OrderOf(const PipelineShape& shape, int device) {
  const bool interleaved = shape.chunks > 1;
  const int behind = shape.devices - device - 1;
  const int all = shape.chunks * shape.microbatches;
  const int ahead =
      std::min(all, interleaved ? 2 * behind + (shape.chunks - 1) * shape.devices : behind);
  std::vector<PipelineTask> order;
  order.reserve(2 * static_cast<size_t>(all));
  const auto add = [&](bool forward, int k) {
    order.push_back(interleaved ? KthTask(shape, device, forward, k)
                                : PipelineTask{forward, device, k});
  };
  for (int k = 0; k < ahead; ++k) add(true, k);
  for (int k = ahead; k < all; ++k) {
    add(true, k);
    add(false, k - ahead);
  }
  for (int k = all - ahead; k < all; ++k) add(false, k);
  return order;
}

// Whether what is in flight beside `a` takes no more than beside `b`, whatever the stages hold.
bool Within(const PipelineEvaluator::Load& a, const PipelineEvaluator::Load& b) {
  if (a.forward != b.forward || a.chunk != b.chunk) return false;
  for (size_t c = 0; c < a.stashes.size(); ++c) {
    if (a.stashes[c] > b.stashes[c]) return false;
  }
  return true;
}

}  // namespace

absl::Status CheckPipelineShape(const PipelineShape& shape) {
  absl::Status status = CheckRange("devices", shape.devices, kMostDevices);
  if (status.ok()) status = CheckRange("chunks", shape.chunks, kMostChunks);
  if (status.ok()) status = CheckRange("microbatches", shape.microbatches, kMostMicrobatches);
  if (!status.ok()) return status;
  const int64_t most = kMostTasks / 2 / shape.devices / shape.chunks;
  if (shape.microbatches > most) {
    return FieldError("microbatches", shape.microbatches,
                      absl::StrCat("must be at most ", most, " for ", shape.stages(), " stages"));
  }
  if (shape.chunks > 1 && shape.microbatches % shape.devices != 0) {
    return FieldError("microbatches", shape.microbatches,
                      absl::StrCat("must be a multiple of devices (", shape.devices,
                                   ") where stages are interleaved"));
  }
  constexpr int64_t kMostTransfer = kMaxTimeTotal / kMostTasks;
  if (shape.transfer_time < Nanos(0) || shape.transfer_time.value() > kMostTransfer) {
    return FieldError("transfer_time_ns", shape.transfer_time.value(),
                      absl::StrCat("must be in [0, ", kMostTransfer, "]"));
  }
  return absl::OkStatus();
}

PipelineEvaluator::PipelineEvaluator(const PipelineShape& shape) : shape_(shape) {
  const int last = shape.stages() - 1;
  for (int d = 0; d < shape.devices; ++d) order_.push_back(OrderOf(shape, d));
  FindLoads();
  // Round after round each device runs what it can. No schedule above stands still.
  const auto number = [this](bool forward, int stage, int microbatch) {
    return 2 * (stage * shape_.microbatches + microbatch) + (forward ? 0 : 1);
  };
  const size_t tasks = 2 * static_cast<size_t>(shape.stages()) * shape.microbatches;
  std::vector<bool> ended(tasks, false);
  std::vector<size_t> next(order_.size(), 0);
  steps_.reserve(tasks);
  for (bool moved = true; moved;) {
    moved = false;
    for (int d = 0; d < shape.devices; ++d) {
      const std::vector<PipelineTask>& order = order_[static_cast<size_t>(d)];
      for (size_t& i = next[static_cast<size_t>(d)]; i < order.size(); ++i) {
        const auto [forward, stage, microbatch] = order[i];
        Step step = {d, stage, number(forward, stage, microbatch), -1, forward, false};
        if (forward ? stage > 0 : stage < last) {
          step.before = number(forward, stage + (forward ? -1 : 1), microbatch);
          step.transferred = shape.devices > 1;
        } else if (!forward) {
          step.before = number(true, stage, microbatch);
        }
        if (step.before >= 0 && !ended[static_cast<size_t>(step.before)]) break;
        ended[static_cast<size_t>(step.own)] = true;
        steps_.push_back(step);
        moved = true;
      }
    }
  }
}

void PipelineEvaluator::FindLoads() {
  for (int d = 0; d < shape_.devices; ++d) {
    std::vector<Load> loads;
    std::vector<int> stashes(static_cast<size_t>(shape_.chunks), 0);
    for (const PipelineTask& task : order_[static_cast<size_t>(d)]) {
      const int chunk = task.stage / shape_.devices;
      int& own = stashes[static_cast<size_t>(chunk)];
      if (!task.forward) --own;
      const Load load = {task.forward, chunk, stashes};
      if (task.forward) ++own;
      if (std::any_of(loads.begin(), loads.end(),
                      [&load](const Load& other) { return Within(load, other); })) {
        continue;
      }
      loads.erase(std::remove_if(loads.begin(), loads.end(),
                                 [&load](const Load& other) { return Within(other, load); }),
                  loads.end());
      loads.push_back(load);
    }
    loads_.push_back(std::move(loads));
  }
}

Nanos PipelineEvaluator::Makespan(const std::vector<Nanos>& forward_times,
                                  const std::vector<Nanos>& backward_times) const {
  std::vector<Nanos> ends(steps_.size());
  std::vector<Nanos> free(order_.size());
  Nanos makespan;
  for (const Step& step : steps_) {
    Nanos& now = free[static_cast<size_t>(step.device)];
    if (step.before >= 0) {
      Nanos there = ends[static_cast<size_t>(step.before)];
      if (step.transferred) there += shape_.transfer_time;
      now = std::max(now, there);
    }
    now += (step.forward ? forward_times : backward_times)[static_cast<size_t>(step.stage)];
    ends[static_cast<size_t>(step.own)] = now;
    makespan = std::max(makespan, now);
  }
  return makespan;
}

Bytes PipelineEvaluator::Peak(int device, const std::vector<PipelineStageCosts>& costs) const {
  const auto cost = [&](int chunk) -> const PipelineStageCosts& {
    return costs[static_cast<size_t>(device + chunk * shape_.devices)];
  };
  Bytes peak;
  for (const Load& load : OfDevice(device)) {
    Bytes held = load.forward ? cost(load.chunk).forward_peak : cost(load.chunk).backward_peak;
    for (int c = 0; c < shape_.chunks; ++c) {
      held += Bytes(cost(c).stash.value() * load.stashes[static_cast<size_t>(c)]);
    }
    peak = std::max(peak, held);
  }
  return peak;
}

absl::StatusOr<Chain> PipelineStageChain(const Chain& chain, int first, int last) {
  if (first < 1 || first > chain.length()) {
    return FieldError("first_layer", first, absl::StrCat("must be in [1, ", chain.length(), "]"));
  }
  if (last < first || last > chain.length()) {
    return FieldError("last_layer", last,
                      absl::StrCat("must be in [", first, ", ", chain.length(), "]"));
  }
  ChainSpec spec;
  spec.name = chain.name();
  spec.input = chain.activation(first - 1);
  spec.input_gradient = chain.gradient(first - 1);
  for (int l = first; l <= last; ++l) spec.stages.push_back(chain.stage(l));
  if (last == chain.length()) spec.loss = chain.spec().loss;
  return Chain::Create(std::move(spec));
}

absl::StatusOr<PipelineStageCosts> ReplayPipelineStage(const Chain& stage_chain, bool is_last,
                                                       const Schedule& schedule,
                                                       int forward_instructions) {
  const size_t turn = static_cast<size_t>(forward_instructions);
  if (forward_instructions < 1 || turn >= schedule.size()) {
    return FieldError("forward_instructions", forward_instructions,
                      absl::StrCat("must be in [1, ", schedule.size(), ")"));
  }
  std::vector<TimelinePoint> timeline;
  const absl::StatusOr<Simulation> run = Evaluator(stage_chain).Run(schedule, &timeline);
  if (!run.ok()) return run.status();
  const int loss = stage_chain.length() + 1;
  const Bytes start = stage_chain.activation(0) + stage_chain.gradient(loss);
  const TimelinePoint& at_turn = timeline[turn - 1];
  // Where the loss is no more than where the gradient comes in, it is not there yet when the forward task ends.
  const Bytes comes_in = is_last ? Bytes(0) : stage_chain.gradient(loss - 1);
  PipelineStageCosts costs = {at_turn.end, run->makespan - at_turn.end, at_turn.held - comes_in,
                              start, at_turn.held};
  for (size_t i = 0; i < schedule.size(); ++i) {
    const Bytes most = std::max(timeline[i].running, timeline[i].held);
    if (i >= turn) {
      costs.backward_peak = std::max(costs.backward_peak, most);
    } else if (schedule[i].op != Op::kBackward) {
      costs.forward_peak = std::max(costs.forward_peak, most);
    } else if (is_last || i + 1 < turn) {
      return FieldError("forward_instructions", forward_instructions,
                        absl::StrCat("the forward task has ", ToString(schedule[i])));
    }
  }
  if (!is_last && !(schedule[turn - 1] == Backward(loss))) {
    return FieldError("forward_instructions", forward_instructions,
                      absl::StrCat("the forward task must end with ", ToString(Backward(loss))));
  }
  return costs;
}

}  // namespace stowage
