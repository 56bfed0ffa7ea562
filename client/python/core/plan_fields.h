// Plans and schedules in Python: dictionaries of the contract's JSON mapping (proto/stowage/v1/plan.proto), and
// instructions as tuples (op, stage, tensor, stream, part) of the words that plans are printed with.
#ifndef STOWAGE_CLIENT_PYTHON_CORE_PLAN_FIELDS_H_
#define STOWAGE_CLIENT_PYTHON_CORE_PLAN_FIELDS_H_

#include <pybind11/pybind11.h>

#include "solvers/schedule/plan.h"
#include "solvers/schedule/schedule.h"

namespace stowage {

pybind11::dict DictOf(const Plan& plan);
// Throws a StatusError where the dictionary is no plan, or its digest is not that of its schedule. What it predicts has
// not been validated.
Plan PlanFromDict(const pybind11::dict& dict);

pybind11::list TuplesOf(const Schedule& schedule);
// From sequences of one to five entries: what is left out is the op's own. Throws a StatusError.
Schedule ScheduleFromTuples(const pybind11::sequence& instructions);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_PYTHON_CORE_PLAN_FIELDS_H_
