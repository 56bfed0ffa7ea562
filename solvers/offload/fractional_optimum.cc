#include "solvers/offload/fractional_optimum.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "solvers/offload/relaxed_optimum.h"

namespace stowage {

absl::StatusOr<PartialOffload> OffloadParts(const OffloadProblem& problem,
                                            const std::vector<Bytes>& away) {
  OffloadSpec spec;
  spec.link = problem.link();
  spec.memory = problem.memory();
  OffloadSet set;
  // The part that stays is an activation of its own: an op that takes nothing reads it after the
  // one that reads both. What such an op makes is there while the one before it runs.
  for (int i = 0; i < problem.size(); ++i) {
    const Bytes part = away[static_cast<size_t>(i)];
    const Bytes rest = problem.activation(i) - part;
    if (part > Bytes(0)) set.push_back(static_cast<int>(spec.ops.size()));
    if (part == Bytes(0) || rest == Bytes(0)) {
      spec.activations.push_back(problem.activation(i));
      spec.ops.push_back(problem.op(i));
      continue;
    }
    if (!spec.ops.empty()) {
      spec.ops.back().forward_need += rest;
      spec.ops.back().backward_need += rest;
    }
    spec.activations.push_back(part);
    spec.activations.push_back(rest);
    OffloadOp op = problem.op(i);
    op.forward_need += problem.activation(i + 1);
    op.backward_need += problem.activation(i + 1);
    spec.ops.push_back(op);
    spec.ops.emplace_back();
  }
  spec.activations.push_back(problem.activation(problem.size()));
  absl::StatusOr<OffloadProblem> parts = OffloadProblem::Create(std::move(spec));
  if (!parts.ok()) return parts.status();
  return PartialOffload{*std::move(parts), std::move(set)};
}

std::optional<Nanos> FractionalOptimum(const OffloadProblem& problem) {
  std::vector<Bytes> away(static_cast<size_t>(problem.size()));
  Bytes left = problem.excess();
  for (size_t i = 0; i < away.size(); ++i) {
    away[i] = std::min(left, problem.activation(static_cast<int>(i)));
    left -= away[i];
  }
  if (left > Bytes(0)) return std::nullopt;
  const absl::StatusOr<PartialOffload> parts = OffloadParts(problem, away);
  if (!parts.ok()) return std::nullopt;
  return ExactRelaxedMakespan(parts->problem, parts->set);
}

}  // namespace stowage
