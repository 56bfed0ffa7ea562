// The version of Stowage: of its programs, packages and images, and of the CMake project; tests/deploy holds them together.
//
// It rises with every release. What plans a request gets is told apart by kSolverVersion (solvers/planner.h), which rises
// where plans change alone: a release that mends a command makes no server solve anew what it keeps. A release in which
// kSolverVersion has risen has a version of its own, so two programs of one release make the same plans.
#ifndef STOWAGE_SOLVERS_BASE_VERSION_H_
#define STOWAGE_SOLVERS_BASE_VERSION_H_

namespace stowage {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_BASE_VERSION_H_
