// Profiles to and from dictionaries of the contract's JSON mapping (proto/stowage/v1/profile.proto).
#ifndef STOWAGE_CLIENT_PYTHON_CORE_PROBLEM_FIELDS_H_
#define STOWAGE_CLIENT_PYTHON_CORE_PROBLEM_FIELDS_H_

#include <pybind11/pybind11.h>

#include "solvers/model/problem.h"

namespace stowage {

// Throws a StatusError that names field, value and rule where the dictionary is no valid profile.
Profile ProfileFromDict(const pybind11::dict& dict);

// Every field, zeros too.
pybind11::dict DictOf(const Profile& profile);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_PYTHON_CORE_PROBLEM_FIELDS_H_
