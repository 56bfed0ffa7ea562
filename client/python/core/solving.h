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

// What ends a solve from another thread, or after so many seconds. Throws a StatusError for a deadline that is no positive
// number of seconds.
std::shared_ptr<StopToken> MakeStop(const std::optional<double>& deadline_s);

// What the functions that plan are called with. A stop is of one solve.
struct SolveArguments {
  std::string solver;
  int64_t slots = 0;
  int threads = 1;
  std::shared_ptr<StopToken> stop;
  std::optional<int64_t> table_limit_bytes;
  bool recompute_only = false;
};

// One solve, on the thread that made it.
class Solving {
 public:
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
  std::shared_ptr<StopToken> stop_;
  std::chrono::steady_clock::time_point looked_;
  std::optional<pybind11::error_already_set> interrupt_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_PYTHON_CORE_SOLVING_H_
