// What a plan does with each stage of a chain, or vertex of a graph: keep what it makes, recompute it,
// offload it.
#ifndef STOWAGE_SOLVERS_REPORT_STAGE_ROLES_H_
#define STOWAGE_SOLVERS_REPORT_STAGE_ROLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "solvers/model/problem.h"
#include "solvers/model/units.h"
#include "solvers/report/step_timeline.h"

namespace stowage {

// A label per number that instructions have: [0] is the chain's input (of a graph there is none such),
// and so on to the loss or the last vertex. A stage without a name gets its op and number. Not escaped.
std::vector<std::string> StageLabels(const Problem& problem);

// "recompute conv1", "offload saved tensors of conv1, part 2", "wait until saved tensors of conv1 are
// on the host": an event with its stage's label.
std::string EventText(const TimelineEvent& event, const std::string& label);

enum class StageRole : uint8_t { kKeep, kRecompute, kOffload, kRecomputeAndOffload };
// "keep", "recompute", "offload", "recompute and offload".
const char* ToString(StageRole role);

struct StageUse {
  StageRole role = StageRole::kKeep;
  int forwards = 0;
  Nanos forward_time;    // of all of them
  Nanos recompute_time;  // of all but the first
  Nanos backward_time;
  Bytes sent;     // to host memory: of what the stage makes
  Bytes fetched;  // from there
};

// By number, [0] for the chain's input. O(instructions + stages).
std::vector<StageUse> StageUses(const Problem& problem, const StepTimeline& step);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_REPORT_STAGE_ROLES_H_
