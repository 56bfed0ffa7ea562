// Holds a profile told from shapes against a measured one.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_SAME_STRUCTURE_H_
#define STOWAGE_TESTS_CLIENT_TORCH_SAME_STRUCTURE_H_

#include "solvers/model/problem.h"

namespace stowage {

// The same key; field by field, so that a difference says where it is. No overhead is more than was
// measured, no time is told.
void ExpectSameStructure(const Profile& from_shapes, const Profile& measured);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_SAME_STRUCTURE_H_
