// Plans and schedules as text for people.
#ifndef STOWAGE_SOLVERS_SCHEDULE_TEXT_H_
#define STOWAGE_SOLVERS_SCHEDULE_TEXT_H_

#include <string>

#include "solvers/schedule/plan.h"

namespace stowage {

// One line per run of like instructions: "forward-save 3-7", "backward 21-18".
std::string ScheduleText(const Schedule& schedule);

// A few lines, for readers who know no words of ours: status, budget, peak, time and overhead, bound,
// what is recomputed, by whom it was planned. Without the schedule.
std::string PlanText(const Plan& plan);

// Of a plan that was found: "no schedule within the budget is faster", "proven the fastest of ...", "not
// proven the fastest of ...".
std::string OptimalityText(const Plan& plan);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_TEXT_H_
