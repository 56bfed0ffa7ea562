#include "client/python/core/solving.h"

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace py = pybind11;
namespace {

constexpr double kLongestSeconds = 1e9;
constexpr std::chrono::milliseconds kBetweenLooks{50};

}  // namespace

std::shared_ptr<StopToken> MakeStop(const std::optional<double>& deadline_s) {
  if (!deadline_s) return std::make_shared<StopToken>();
  if (!(*deadline_s > 0.0 && *deadline_s <= kLongestSeconds)) {
    Throw(FieldError("deadline_s", absl::StrCat(*deadline_s),
                     absl::StrCat("must be in (0, ", kLongestSeconds, "]")));
  }
  const auto span = std::chrono::duration_cast<StopToken::Clock::duration>(
      std::chrono::duration<double>(*deadline_s));
  return std::make_shared<StopToken>(StopToken::Clock::now() + span);
}

Solving::Solving(const SolveArguments& arguments)
    : stop_(arguments.stop), looked_(std::chrono::steady_clock::now()) {
  options_.solver = arguments.solver;
  options_.recompute_only = arguments.recompute_only;
  options_.solve.slots = arguments.slots;
  options_.solve.threads = arguments.threads;
  if (arguments.table_limit_bytes) {
    options_.solve.table_limit = Bytes(*arguments.table_limit_bytes);
  }
  options_.solve.stop = stop_.get();
  options_.solve.progress = [this](double) { LookForSignals(); };
}

void Solving::LookForSignals() {
  const auto now = std::chrono::steady_clock::now();
  if (interrupt_ || now - looked_ < kBetweenLooks) return;
  looked_ = now;
  py::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() == 0) return;
  interrupt_.emplace();  // takes what the handler raised
  stop_->RequestStop();
}

}  // namespace stowage
