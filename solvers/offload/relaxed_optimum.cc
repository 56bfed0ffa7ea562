#include "solvers/offload/relaxed_optimum.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "solvers/offload/greedy.h"
#include "solvers/offload/relaxed_limits.h"
#include "solvers/offload/relaxed_recurrence.h"

namespace stowage {
namespace {

using absl::int128;

// A unit of time, 1/per_nano ns, in which a byte takes a whole number each way.
struct ExactUnit {
  int128 per_nano;
  int128 offload_byte;
  int128 prefetch_byte;
};

ExactUnit ExactUnitOf(const TransferModel& link) {
  // A byte takes p/q ns.
  const int64_t out = std::gcd(link.to_host.bytes_per_second, kNanosPerSecond);
  const int64_t in = std::gcd(link.to_device.bytes_per_second, kNanosPerSecond);
  const int64_t out_q = link.to_host.bytes_per_second / out;
  const int64_t in_q = link.to_device.bytes_per_second / in;
  const int64_t common = std::gcd(out_q, in_q);
  return {int128(out_q) * (in_q / common), int128(kNanosPerSecond / out) * (in_q / common),
          int128(kNanosPerSecond / in) * (out_q / common)};
}

// More than any sum the recurrence makes, in doubles.
double LargestSum(const OffloadProblem& problem, const ExactUnit& unit) {
  double bytes = static_cast<double>(problem.prefix(problem.size() + 1).value()) +
                 static_cast<double>(problem.peak().value()) +
                 static_cast<double>(problem.memory().value());
  bytes *= static_cast<double>(unit.offload_byte) + static_cast<double>(unit.prefetch_byte);
  const double times =
      static_cast<double>(problem.ideal_time().value()) * static_cast<double>(unit.per_nano);
  return 8 * (bytes + times);
}

template <class Number>
RelaxedInstance<Number> ExactInstance(const OffloadProblem& problem, const ExactUnit& unit) {
  RelaxedInstance<Number> instance;
  const auto per_nano = static_cast<Number>(unit.per_nano);
  for (int i = 0; i < problem.size(); ++i) {
    const OffloadOp& op = problem.op(i);
    instance.ops.push_back({Number(op.forward_time.value()) * per_nano,
                            Number(op.backward_time.value()) * per_nano,
                            Number(op.forward_need.value()), Number(op.backward_need.value())});
  }
  for (int i = 0; i <= problem.size(); ++i) {
    instance.activations.push_back(Number(problem.activation(i).value()));
  }
  instance.memory = Number(problem.memory().value());
  instance.host_memory = Number(problem.link().host_memory.value());
  instance.offload_time = static_cast<Number>(unit.offload_byte);
  instance.prefetch_time = static_cast<Number>(unit.prefetch_byte);
  return instance;
}

Nanos MakespanOf(const OffloadProblem& problem, const ExactUnit& unit, int128 idle) {
  return problem.ideal_time() +
         Nanos(static_cast<int64_t>((idle + unit.per_nano - 1) / unit.per_nano));
}

template <class Number>
std::optional<Nanos> ExactMakespan(const OffloadProblem& problem, const ExactUnit& unit,
                                   const OffloadSet& set) {
  const RelaxedInstance<Number> instance = ExactInstance<Number>(problem, unit);
  const std::optional<Number> idle = RelaxedRecurrence<Number>(instance).IdleOf(set);
  if (!idle) return std::nullopt;
  return MakespanOf(problem, unit, *idle);
}

template <class Number>
absl::StatusOr<std::optional<RelaxedOptimum>> SolveExactly(const OffloadProblem& problem,
                                                           const ExactUnit& unit,
                                                           const SolveOptions& options) {
  const RelaxedInstance<Number> instance = ExactInstance<Number>(problem, unit);
  using Recurrence = RelaxedRecurrence<Number>;
  const RelaxedLimits limits =
      RelaxedLimitsOf(problem, options, sizeof(typename Recurrence::State), /*beam=*/false);
  absl::StatusOr<RelaxedSolution<Number>> solution =
      Recurrence(instance).Solve({EagerSet(problem)}, limits, options);
  if (!solution.ok()) return solution.status();
  if (!solution->complete) return std::optional<RelaxedOptimum>();
  RelaxedOptimum optimum;
  optimum.sets = std::move(solution->sets);
  if (solution->idle) optimum.makespan = MakespanOf(problem, unit, *solution->idle);
  return std::optional<RelaxedOptimum>(std::move(optimum));
}

constexpr double kNarrow = 4.6e18;  // 2^62
constexpr double kWide = 8.5e37;    // 2^126

}  // namespace

std::optional<Nanos> ExactRelaxedMakespan(const OffloadProblem& problem, const OffloadSet& set) {
  const ExactUnit unit = ExactUnitOf(problem.link());
  const double largest = LargestSum(problem, unit);
  if (largest < kNarrow) return ExactMakespan<int64_t>(problem, unit, set);
  if (largest < kWide) return ExactMakespan<int128>(problem, unit, set);
  return std::nullopt;
}

absl::StatusOr<std::optional<RelaxedOptimum>> ExactRelaxedOptimum(const OffloadProblem& problem,
                                                                  const SolveOptions& options) {
  const ExactUnit unit = ExactUnitOf(problem.link());
  const double largest = LargestSum(problem, unit);
  if (largest < kNarrow) return SolveExactly<int64_t>(problem, unit, options);
  if (largest < kWide) return SolveExactly<int128>(problem, unit, options);
  return std::optional<RelaxedOptimum>();
}

}  // namespace stowage
