#include "tests/solvers/pipeline/naive_pipeline.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace stowage::testing {
namespace {

// All forwards of a device, in order: groups of as many microbatches as there are devices go through chunk after chunk.
std::vector<std::pair<int, int>> Forwards(const PipelineShape& shape, int device) {
  std::vector<std::pair<int, int>> tasks;  // stage, microbatch
  const int group = shape.chunks == 1 ? shape.microbatches : shape.devices;
  for (int begin = 0; begin < shape.microbatches; begin += group) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int m = begin; m < begin + group; ++m) {
        tasks.push_back({device + chunk * shape.devices, m});
      }
    }
  }
  return tasks;
}

std::vector<std::pair<int, int>> Backwards(const PipelineShape& shape, int device) {
  std::vector<std::pair<int, int>> tasks = Forwards(shape, device);
  for (auto& [stage, m] : tasks) {
    const int chunk = (stage - device) / shape.devices;
    stage = device + (shape.chunks - 1 - chunk) * shape.devices;
  }
  return tasks;
}

// What is held of one microbatch on one stage.
class Held {
 public:
  Held(const Chain& chain, bool last) : chain_(chain), last_(last) { plain_.insert(0); }

  int64_t Bytes() const {
    int64_t sum = 0;
    for (const int l : plain_) sum += chain_.activation(l).value();
    for (const int l : saved_) {
      sum +=
          (stopped_.count(l) > 0 ? chain_.stage(l).stopped_saved() : chain_.stage(l).saved).value();
    }
    if (last_ && gradient_ < 0) sum += chain_.gradient(chain_.length() + 1).value();
    if (gradient_ >= 0) sum += chain_.gradient(gradient_).value();
    return sum;
  }

  void GradientComes() {
    if (!last_) gradient_ = chain_.length();
  }
  void OutputIsSent() { plain_.erase(chain_.length()); }

  // Returns what is held beyond Bytes() while it runs. `next` is the instruction behind it.
  int64_t Run(const Instruction& i, const Instruction& next, int64_t* time) {
    const int l = i.stage;
    const Stage& stage = l > 0 ? chain_.stage(l) : Stage();
    switch (i.op) {
      case Op::kForwardSave: {
        const bool stops = stage.stops() && ran_.count(l) > 0 && next == Backward(l);
        ran_.insert(l);
        *time += (stops ? stage.stopped_time() : stage.forward_time).value();
        after_ = [this, l, stops] {
          saved_.insert(l);
          if (stops) stopped_.insert(l);
        };
        return (stops ? stage.stopped_saved() + stage.stopped_overhead()
                      : stage.saved + stage.forward_saving_overhead)
            .value();
      }
      case Op::kForwardNoSave:
      case Op::kForwardNoSaveFreeInput:
        ran_.insert(l);
        *time += stage.forward_time.value();
        after_ = [this, l, drop = i.op == Op::kForwardNoSaveFreeInput] {
          plain_.insert(l);
          if (drop) plain_.erase(l - 1);
        };
        return (stage.output + stage.forward_overhead).value();
      case Op::kBackward:
        *time += stage.backward_time.value();
        after_ = [this, l] {
          saved_.erase(l);
          plain_.erase(l - 1);
          gradient_ = l - 1;
        };
        return stage.backward_overhead.value();
      default:  // plans have no other
        after_ = [this, l, kind = i.tensor] {
          (kind == TensorKind::kActivation ? plain_ : saved_).erase(l);
        };
        return 0;
    }
  }
  void Done() { after_(); }

 private:
  const Chain& chain_;
  const bool last_;
  std::set<int> plain_, saved_, stopped_, ran_;
  int gradient_ = -1;  // none yet, but for the seed of the loss
  std::function<void()> after_;
};

}  // namespace

int64_t RunTasks(const PipelineShape& shape,
                 const std::function<int64_t(const PipelineTask&)>& run) {
  struct Device {
    std::vector<std::pair<int, int>> forwards, backwards;
    size_t f = 0, b = 0;  // how many have run
    int64_t time = 0;
  };
  std::vector<Device> devices;
  for (int d = 0; d < shape.devices; ++d) {
    devices.push_back({Forwards(shape, d), Backwards(shape, d)});
  }
  std::map<std::tuple<bool, int, int>, int64_t> ends;
  const int64_t transfer = shape.devices > 1 ? shape.transfer_time.value() : 0;
  size_t ran = 0;
  const size_t all = 2 * devices[0].forwards.size() * devices.size();
  int64_t makespan = 0;
  for (bool moved = true; moved && ran < all;) {
    moved = false;
    for (int d = 0; d < shape.devices; ++d) {
      Device& device = devices[static_cast<size_t>(d)];
      if (device.b == device.backwards.size()) continue;
      // So many are in flight at most.
      const int behind = shape.devices - 1 - d;
      const size_t most = static_cast<size_t>(
          shape.chunks == 1 ? behind + 1 : 2 * behind + (shape.chunks - 1) * shape.devices + 1);
      const bool forward = device.f < device.forwards.size() && device.f - device.b < most;
      const auto [stage, m] = forward ? device.forwards[device.f] : device.backwards[device.b];
      int64_t start = device.time;
      const bool ends_here = forward ? stage == 0 : stage == shape.stages() - 1;
      if (!ends_here) {
        const auto before = ends.find({forward, stage + (forward ? -1 : 1), m});
        if (before == ends.end()) continue;
        start = std::max(start, before->second + transfer);
      } else if (!forward && ends.count({true, stage, m}) == 0) {
        continue;
      }
      device.time = start + run({forward, stage, m});
      ends[{forward, stage, m}] = device.time;
      makespan = std::max(makespan, device.time);
      ++(forward ? device.f : device.b);
      ++ran;
      moved = true;
    }
  }
  return ran == all ? makespan : -1;
}

NaivePipeline RunPlan(const Chain& chain, const PipelineShape& shape, const PipelinePlan& plan) {
  std::vector<Chain> chains;
  for (const PipelineStagePlan& stage : plan.stages) {
    chains.push_back(*PipelineStageChain(chain, stage.first_layer, stage.last_layer));
  }
  NaivePipeline result;
  result.peaks.resize(static_cast<size_t>(shape.devices), 0);
  std::map<std::pair<int, int>, Held> held;  // stage, microbatch
  result.makespan = RunTasks(shape, [&](const PipelineTask& task) {
    const size_t s = static_cast<size_t>(task.stage);
    const PipelineStagePlan& stage = plan.stages[s];
    const auto own = held.insert({{task.stage, task.microbatch},
                                  Held(chains[s], task.stage == shape.stages() - 1)})
                         .first;
    int64_t& peak = result.peaks[static_cast<size_t>(task.stage % shape.devices)];
    const auto look = [&](int64_t running) {
      int64_t sum = running;
      for (const auto& [at, what] : held) {
        if (at.first % shape.devices == task.stage % shape.devices) sum += what.Bytes();
      }
      peak = std::max(peak, sum);
    };
    if (!task.forward) own->second.GradientComes();
    look(0);
    int64_t time = 0;
    const size_t turn = static_cast<size_t>(stage.forward_instructions);
    const size_t begin = task.forward ? 0 : turn;
    const size_t end = task.forward ? turn : stage.schedule.size();
    for (size_t i = begin; i < end; ++i) {
      const bool comes_in =
          task.stage < shape.stages() - 1 && stage.schedule[i].stage == chains[s].length() + 1;
      if (comes_in) {  // a loss that costs nothing
        if (stage.schedule[i].op == Op::kBackward) own->second.OutputIsSent();
        continue;
      }
      const Instruction next = i + 1 < end ? stage.schedule[i + 1] : Instruction();
      look(own->second.Run(stage.schedule[i], next, &time));
      own->second.Done();
      look(0);
    }
    if (!task.forward) held.erase(own);
    return time;
  });
  return result;
}

}  // namespace stowage::testing
