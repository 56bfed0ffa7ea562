#include "solvers/model/chain.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "solvers/model/field_error.h"

namespace stowage {
namespace {

struct Totals {
  int64_t bytes = 0;
  int64_t nanos = 0;
  int64_t nanos_limit = kMaxTimeTotal;
};

void CheckTimes(const Stage& stage, Totals* totals, FieldChecks* checks) {
  static constexpr char kWhat[] = "the sum of all times times (stages + 2)";
  const std::pair<const char*, Nanos> times[] = {{"forward_time_ns", stage.forward_time},
                                                 {"backward_time_ns", stage.backward_time}};
  for (const auto& [field, time] : times) {
    checks->NonNegative(field, time.value());
    checks->Total(field, time.value(), totals->nanos_limit, kWhat, &totals->nanos);
  }
}

void CheckSizes(const Stage& stage, Totals* totals, FieldChecks* checks) {
  const std::pair<const char*, Bytes> sizes[] = {
      {"output_bytes", stage.output},
      {"saved_bytes", stage.saved},
      {"output_gradient_bytes", stage.output_gradient},
      {"forward_saving_overhead_bytes", stage.forward_saving_overhead},
      {"forward_overhead_bytes", stage.forward_overhead},
      {"backward_overhead_bytes", stage.backward_overhead},
      {"transient_parameter_bytes", stage.transient_parameters},
  };
  for (const auto& [field, size] : sizes) {
    checks->NonNegative(field, size.value());
    checks->Total(field, size.value(), kMaxTotal, "the sum of all sizes", &totals->bytes);
  }
  checks->AtLeast("saved_bytes", stage.saved.value(), stage.output.value(), "output_bytes");
}

// The saved tensors and the output are within what is saved.
absl::Status CheckSavedTensors(const Stage& stage, const std::string& prefix) {
  const size_t count = stage.saved_tensors.size();
  if (count > Stage::kMaxSavedTensors) {
    return FieldError(
        absl::StrCat(prefix, "saved_tensor_bytes"), static_cast<int64_t>(count),
        absl::StrCat("must have at most ", Stage::kMaxSavedTensors, " saved tensors"));
  }
  Bytes left = stage.saved - stage.output;
  for (size_t i = 0; i < count; ++i) {
    const Bytes bytes = stage.saved_tensors[i];
    if (bytes >= Bytes(0) && bytes <= left) {
      left -= bytes;
      continue;
    }
    return FieldError(absl::StrCat(prefix, "saved_tensor_bytes[", i, "]"), bytes.value(),
                      bytes < Bytes(0)
                          ? std::string("must be >= 0")
                          : absl::StrCat("makes their sum exceed saved_bytes - output_bytes (",
                                         (stage.saved - stage.output).value(), ")"));
  }
  return absl::OkStatus();
}

absl::Status CheckStage(const Stage& stage, const std::string& prefix, Totals* totals) {
  FieldChecks checks(prefix);
  checks.MaxLength("name", stage.name);
  checks.MaxLength("op_kind", stage.op_kind);
  CheckTimes(stage, totals, &checks);
  CheckSizes(stage, totals, &checks);
  CheckStoppedRecompute(stage, &checks);
  return checks.status().ok() ? CheckSavedTensors(stage, prefix) : checks.status();
}

absl::Status CheckLoss(const Stage& loss, Totals* totals) {
  constexpr char kPrefix[] = "chain.loss.";
  absl::Status status = CheckStage(loss, kPrefix, totals);
  if (!status.ok() || !loss.stops()) return status;
  return FieldError(absl::StrCat(kPrefix, "recompute_saving_time_ns"),
                    loss.recompute_saving_time->value(),
                    "must be absent: the backward of a loss follows its first forward");
}

absl::Status CheckChain(const ChainSpec& spec) {
  const size_t stages = spec.stages.size();
  if (stages == 0) return FieldError("chain.stages", "[]", "must have at least one stage");
  if (stages > Chain::kMaxStages) {
    return FieldError("chain.stages", static_cast<int64_t>(stages),
                      absl::StrCat("must have at most ", Chain::kMaxStages, " stages"));
  }
  Totals totals;
  totals.nanos_limit = kMaxTimeTotal / static_cast<int64_t>(stages + 2);
  FieldChecks checks("chain.");
  checks.NonNegative("input_bytes", spec.input.value());
  checks.NonNegative("input_gradient_bytes", spec.input_gradient.value());
  checks.Total("input_bytes", spec.input.value(), kMaxTotal, "the sum of all sizes", &totals.bytes);
  checks.Total("input_gradient_bytes", spec.input_gradient.value(), kMaxTotal,
               "the sum of all sizes", &totals.bytes);
  if (!checks.status().ok()) return checks.status();
  for (size_t i = 0; i < stages; ++i) {
    absl::Status status =
        CheckStage(spec.stages[i], absl::StrCat("chain.stages[", i, "]."), &totals);
    if (!status.ok()) return status;
  }
  return CheckLoss(spec.loss, &totals);
}

}  // namespace

Bytes Stage::part(int k) const {
  if (k < parts()) return saved_tensors[static_cast<size_t>(k) - 1];
  return std::accumulate(saved_tensors.begin(), saved_tensors.end(), saved, std::minus<>());
}

absl::StatusOr<Chain> Chain::Create(ChainSpec spec) {
  absl::Status status = CheckChain(spec);
  if (!status.ok()) return status;
  return Chain(std::move(spec));
}

Chain::Chain(ChainSpec spec) : spec_(std::move(spec)) {
  for (int l = 1; l <= length() + 1; ++l) {
    ideal_time_ += stage(l).forward_time + stage(l).backward_time;
    stops_ = stops_ || stage(l).stops();
  }
}

}  // namespace stowage
