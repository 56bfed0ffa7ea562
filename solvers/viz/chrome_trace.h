// A step as a trace in the JSON format of Chrome's trace viewer, which Perfetto reads too: streams as
// threads, instructions as slices, memory by use as counters.
//
// Process 1 is what is planned, process 2, where there is one, what was measured: of copies that is
// when compute asked for them and when it had waited for them. Times are microseconds from the start of
// the step, to the nanosecond; memory is bytes. Discards and waits that took no time are
// instants. Events of a thread come in the order in which they run, and none overlaps another.
//
// Both processes count "total memory"; "memory" has it by use, of those that there are. Perfetto draws each number of a counter as a
// track of its own, so that a sum has to be said; Chrome's viewer stacks them. It rounds times to what
// displayTimeUnit says before it nests slices: hence nanoseconds, also of steps that take seconds.
#ifndef STOWAGE_SOLVERS_VIZ_CHROME_TRACE_H_
#define STOWAGE_SOLVERS_VIZ_CHROME_TRACE_H_

#include <string>

#include "solvers/model/problem.h"
#include "solvers/viz/drawn_plan.h"

namespace stowage {

// UTF-8, in names of events as it is: Perfetto shows escapes as they are written, or refuses them. `plan` is one of `problem`. O(instructions + stages).
std::string ChromeTrace(const Problem& problem, const DrawnPlan& plan);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_VIZ_CHROME_TRACE_H_
