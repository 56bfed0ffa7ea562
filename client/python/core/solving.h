// How Python calls the planner: without the interpreter's lock, within limits, and so that Ctrl-C is heard.
#ifndef STOWAGE_CLIENT_PYTHON_CORE_SOLVING_H_
#define STOWAGE_CLIENT_PYTHON_CORE_SOLVING_H_

#include <pybind11/pybind11.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "client/python/core/status_error.h"
#include "solvers/base/stop_token.h"
#include "solvers/planner.h"

namespace stowage {

// What the functions that plan are called with.
struct SolveArguments {
  std::string solver;
  int64_t slots = 0;
  int threads = 1;
  std::optional<double> deadline_s;
  std::optional<int64_t> table_limit_bytes;
  bool recompute_only = false;
};

// One solve, on the thread that made it.
class Solving {
 public:
  // Throws a StatusError for a deadline that is no positive number of seconds.
  explicit Solving(const SolveArguments& arguments);

  // solve(options), its value or its StatusError; what a signal's handler raised meanwhile before either.
  template <class Solve>
  auto Run(Solve solve) {
    auto solved = [&] {
      pybind11::gil_scoped_release unlocked;
      return solve(options_);
    }();
    if (interrupt_) throw *interrupt_;
    return ValueOrThrow(std::move(solved));
  }

 private:
  void LookForSignals();

  PlanOptions options_;
  std::unique_ptr<StopToken> stop_;
  std::chrono::steady_clock::time_point looked_;
  std::optional<pybind11::error_already_set> interrupt_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_PYTHON_CORE_SOLVING_H_
