// A pipeline: a chain cut into stages on several devices, through which the microbatches of a step go one after the
// other, each device within a memory budget of its own.
//
// A stage of the chain is called a layer here. Device d of D has stage d, and with interleaving the stages d + D,
// d + 2D, ..., C of them; the loss belongs to the last stage. What a device runs, and in which order, is fixed:
//   - C = 1: 1F1B (PipeDream-Flush; Narayanan et al. 2021, "Efficient large-scale language model training on GPU
//     clusters using Megatron-LM", section 2.2): D - d - 1 forwards, then one forward and one backward in turns, then
//     the backwards that are left.
//   - C > 1: their interleaved schedule, of groups of D microbatches; 2 (D - d - 1) + (C - 1) D forwards first.
// A task starts when the one before it on its device has ended and what it reads is there: a forward the output of the
// stage before, a backward the gradient from the stage behind.
//
// Memory: between the two tasks of a microbatch on a stage the device holds its stash, what the forward has kept for
// the backward. What is in flight at a stage counts as often: its plan is the point of the Pareto curve of time against
// memory that its number of microbatches in flight leaves room for. Buffers of transfers under way are not counted.
//
// The idea is that of AdaPipe (Sun et al., ASPLOS 2024), recomputation by stage and stages that go with it; plans are
// memory-persistent schedules (Beaumont et al. 2019), in which stretches of layers keep their input alone and run again
// within what memory there is. Times are whole nanoseconds, sizes bytes. Everything here is thread-safe and gives equal
// answers on every machine.
#ifndef STOWAGE_SOLVERS_PIPELINE_PIPELINE_H_
#define STOWAGE_SOLVERS_PIPELINE_PIPELINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/units.h"
#include "solvers/schedule/plan.h"
#include "solvers/schedule/schedule.h"
#include "solvers/solver.h"

namespace stowage {

struct PipelineShape {
  int devices = 1;       // 1 to 1,024
  int chunks = 1;        // stages on each device, 1 to 64; more than 1: interleaved
  int microbatches = 1;  // 1 to 65,536; where stages are interleaved a multiple of devices
  Nanos
      transfer_time{};  // of an output or a gradient to another device, beside what devices compute

  int stages() const { return devices * chunks; }
  int DeviceOf(int stage) const { return stage % devices; }
};

// OK, or INVALID_ARGUMENT made by FieldError: a number out of the ranges above, or more than 2^20 tasks.
absl::Status CheckPipelineShape(const PipelineShape& shape);

// A forward or a backward of a microbatch on a stage; both are numbered from 0.
struct PipelineTask {
  bool forward = true;
  int stage = 0;
  int microbatch = 0;
};

// What a stage takes for one microbatch.
struct PipelineStageCosts {
  Nanos forward_time;
  Nanos backward_time;  // what is computed again among it
  Bytes stash;          // held from the end of the forward to the start of the backward
  // Of this microbatch alone, while it runs; of the backward the stash and the gradient that has come in among it.
  Bytes forward_peak;
  Bytes backward_peak;
};

// The only function of a pipeline's time and memory: everything that plans, and every plan, is measured by it.
class PipelineEvaluator {
 public:
  // The shape must be valid. O(tasks).
  explicit PipelineEvaluator(const PipelineShape& shape);

  const PipelineShape& shape() const { return shape_; }
  // By device, what it runs, in order.
  const std::vector<std::vector<PipelineTask>>& order() const { return order_; }

  // From the first forward to the end of the last backward, warm-up and cool-down among it. Times by stage. It never
  // falls where a time rises. O(tasks).
  Nanos Makespan(const std::vector<Nanos>& forward_times,
                 const std::vector<Nanos>& backward_times) const;

  // The most that is held on a device at any time. Costs by stage. O(C x what OfDevice has).
  Bytes Peak(int device, const std::vector<PipelineStageCosts>& costs) const;

  // A task beside which as much is in flight as beside any other of its kind: peaks are among these.
  struct Load {
    bool forward = true;
    int chunk = 0;             // of the task: stage device + chunk * D
    std::vector<int> stashes;  // by chunk, how many other microbatches have a stash
  };
  const std::vector<Load>& OfDevice(int device) const {
    return loads_[static_cast<size_t>(device)];
  }

 private:
  // One of all tasks, in an order in which each comes after what it waits for.
  struct Step {
    int32_t device;
    int32_t stage;
    int32_t own;     // where its end is noted
    int32_t before;  // the task whose output it reads; -1: none
    bool forward;
    bool transferred;  // that output comes from another device
  };

  void FindLoads();

  PipelineShape shape_;
  std::vector<std::vector<PipelineTask>> order_;
  std::vector<Step> steps_;
  std::vector<std::vector<Load>> loads_;
};

// The layers first..last of a chain (1 <= first <= last <= L) as a chain of its own: what the schedule of a stage is a
// schedule of. Behind the layers of all but the last stage there is a loss that costs nothing: it stands for the stages
// behind, its forward for the output that is sent, its backward for the gradient that comes in.
// INVALID_ARGUMENT made by FieldError for other numbers.
absl::StatusOr<Chain> PipelineStageChain(const Chain& chain, int first, int last);

struct PipelineStagePlan {
  int first_layer = 0;  // 1 to L
  int last_layer = 0;
  // On PipelineStageChain(chain, first_layer, last_layer), accepted by the evaluator (solvers/schedule/evaluator.h). The
  // forward task is the first `forward_instructions`: of the last stage up to the forward of the loss, of others up to
  // the backward of the loss that costs nothing, which drops the output where nothing else needs it. The rest is the
  // backward task.
  Schedule schedule;
  int forward_instructions = 0;
  PipelineStageCosts costs;  // by the evaluator, under the layers' costs
};

// What the schedule of a stage takes for one microbatch, replayed. `is_last`: the chain has the loss. Errors of
// Evaluator::Run; INVALID_ARGUMENT made by FieldError where the forward task is not one.
// O(instructions + L).
absl::StatusOr<PipelineStageCosts> ReplayPipelineStage(const Chain& stage_chain, bool is_last,
                                                       const Schedule& schedule,
                                                       int forward_instructions);

struct PipelineRequest {
  PipelineShape shape;
  std::vector<Bytes> budgets;  // one per device, >= 0
  // The last layer of each stage, rising, the last one L; empty: they are chosen, each stage has a layer or more.
  std::vector<int> last_layers;
};

struct PipelinePlan {
  // kFound; kProvenInfeasible: no plan of schedule_class, and where the stages are chosen no choice of them, is within
  // the budgets; kNotFound: none was found, and the search did not look at everything.
  PlanStatus status = PlanStatus::kNotFound;
  std::vector<PipelineStagePlan> stages;  // as the rest up to lower_bound empty unless kFound
  Nanos makespan;
  std::vector<Bytes> peaks;  // by device, each within its budget
  Nanos
      lower_bound;  // no plan of the class, and no other choice of stages where they are chosen, is faster
  // Fastest of schedule_class, of all choices of stages where they are chosen.
  bool proven_optimal = false;
  std::string schedule_class;

  // Of what does not fit: a device whose budget is too small, and what it needs. Where stages are given, the first that
  // cannot hold its own. Where they are chosen, of 1F1B the one whose budget has to rise least, the others as they are,
  // or -1 where no single one is enough; interleaved, the first of the stages that want the least equal budget.
  int short_device = -1;
  Bytes least_budget;
  // What is enough where every device has it. Both are least where the status is kProvenInfeasible, else what the
  // search has a plan for.
  Bytes least_equal_budget;
};

// The plans, and where they are chosen the stages, with which the makespan of the pipeline is least.
//
// Of a stage the Pareto set of stash, peaks and time, over exact steps of the persistent recurrence: O(n^2 X R) for n
// layers, X points and R steps, which equal layers share. 1F1B: each stage has the fastest point within its device's budget,
// which is optimal whatever the others do. Interleaved: the points of a device share its budget; branch and bound over
// the Pareto sets of the devices. Choosing the stages: branch and bound over where they end, with a bound from a
// bottleneck recurrence over (device, layer), O(D L^2). All of it is exact on small problems (proven_optimal). On large
// ones Pareto sets are thinned and searches end after a fixed number of steps, also where nothing was found yet (then the plan of
// least memory is looked for), and what is not proven is not said. More
// budget is never slower where all is exact.
//
// Errors: INVALID_ARGUMENT made by FieldError (devices, budgets_bytes[2], last_layers[0], ...), also where the chain has
// more than 1,024 layers or fewer than stages; those of StopToken; RESOURCE_EXHAUSTED where steps, points and choices take more than the
// context's memory, or the machine has not that much.
absl::StatusOr<PipelinePlan> PlanPipeline(const Chain& chain, const PipelineRequest& request,
                                          const SolveContext& context);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PIPELINE_PIPELINE_H_
