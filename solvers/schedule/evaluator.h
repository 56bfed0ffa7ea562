// The evaluator: replays a schedule on an instance and says whether it is valid, how long it takes and how much
// memory it needs. accounting.md has its tables: what each instruction needs, what is held while it runs and
// afterwards, when copies and communication start and end.
//
// Independent of all solvers: no plan leaves the library, or comes out of a cache, that it has not accepted.
#ifndef STOWAGE_SOLVERS_SCHEDULE_EVALUATOR_H_
#define STOWAGE_SOLVERS_SCHEDULE_EVALUATOR_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// Thread-safe.
class Evaluator {
 public:
  explicit Evaluator(Instance instance) : instance_(std::move(instance)) {}

  const Instance& instance() const { return instance_; }

  // What the schedule takes, or INVALID_ARGUMENT that names the first instruction that is not valid and why.
  // Instructions name the chain's stages, or the graph's vertices by position in program order plus 1.
  // `timeline`, if given, is filled with one point per instruction. Without a link no transfer is valid; a link
  // that is not valid is INVALID_ARGUMENT as ValidateTransferModel has it. O(instructions + L) on a chain,
  // O(V + E + the inputs of all instructions) on a graph. Plain training that the instance remembers
  // (Instance::Remembering) is not replayed again: it copies nothing, so that the link is of no account.
  absl::StatusOr<Simulation> Run(const Schedule& schedule,
                                 std::vector<TimelinePoint>* timeline = nullptr) const;

 private:
  Instance instance_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_EVALUATOR_H_
