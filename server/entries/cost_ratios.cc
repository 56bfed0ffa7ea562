#include "server/entries/cost_ratios.h"

#include <algorithm>

#include "absl/numeric/int128.h"
#include "server/entries/cost_compare.h"
#include "server/entries/step_pairs.h"

namespace stowage {
namespace {

bool Repeatable(const Stage& stage) { return stage.recomputable(); }
bool Repeatable(const Vertex& v) { return !v.collective && !v.must_keep && !v.inputs.empty(); }

// What may be repeated, caller to reference.
LeastRatio ForwardRatio(const Problem& caller, const Problem& reference) {
  LeastRatio ratio;
  AllSteps(caller, reference, [&ratio](const auto& ours, const auto& theirs) {
    if (!Repeatable(ours)) return true;
    ratio.Add(ours.forward_time, theirs.forward_time);
    ratio.Add(ours.stopped_time(), theirs.stopped_time());
    return true;
  });
  return ratio;
}

void AddCopy(const TransferModel& ours, const TransferModel& theirs, Bytes bytes,
             LeastRatio* ratio) {
  ratio->Add(CopyTime(ours.to_host, bytes), CopyTime(theirs.to_host, bytes));
  ratio->Add(CopyTime(ours.to_device, bytes), CopyTime(theirs.to_device, bytes));
}

// All that a schedule can copy.
template <class Function>
void ForEachTensor(const Problem& problem, const Function& function) {
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    for (int p = 0; p < graph->size(); ++p) {
      function(graph->vertex(p).output);
      function(graph->vertex(p).extra_saved);
    }
    return;
  }
  const Chain& chain = std::get<Chain>(problem);
  function(chain.activation(0));
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& stage = chain.stage(l);
    function(stage.output);
    function(stage.saved);
    Bytes rest = stage.saved;
    for (const Bytes part : stage.saved_tensors) {
      function(part);
      rest -= part;
    }
    function(rest);
  }
}

LeastRatio RatioOfAll(const Instance& caller, const Instance& reference) {
  LeastRatio ratio;
  AllSteps(caller.problem(), reference.problem(), [&ratio](const auto& ours, const auto& theirs) {
    ratio.Add(ours.forward_time, theirs.forward_time);
    ratio.Add(ours.stopped_time(), theirs.stopped_time());
    ratio.Add(ours.backward_time, theirs.backward_time);
    return true;
  });
  ForEachTensor(caller.problem(),
                [&](Bytes bytes) { AddCopy(*caller.link(), *reference.link(), bytes, &ratio); });
  return ratio;
}

// The caller's link can do no more than that of the reference but for its speed.
bool LinkWithin(const Instance& caller, const Instance& reference) {
  if (!caller.link()) return true;
  return reference.link() && caller.link()->host_memory <= reference.link()->host_memory &&
         (reference.link()->full_duplex || !caller.link()->full_duplex);
}

Nanos Repeated(Nanos makespan, const Instance& instance) {
  return std::max(Nanos(0), makespan - IdealTime(instance.problem()));
}

}  // namespace

void LeastRatio::Add(Nanos caller, Nanos reference) {
  if (reference == Nanos(0)) return;
  const bool less =
      absl::int128(caller.value()) * reference_ < absl::int128(caller_) * reference.value();
  if (any_ && !less) return;
  any_ = true;
  caller_ = caller.value();
  reference_ = reference.value();
}

Nanos LeastRatio::Of(Nanos time) const {
  const absl::int128 scaled = absl::int128(time.value()) * caller_ / reference_;
  return Nanos(static_cast<int64_t>(std::min(scaled, absl::int128(kMaxTotal))));
}

Nanos BoundUnder(const Instance& caller, const Instance& reference, Nanos bound) {
  if (!OverheadsAtLeast(caller.problem(), reference.problem())) return Nanos(0);
  if (!LinkWithin(caller, reference)) return Nanos(0);
  const Nanos ideal = IdealTime(caller.problem());
  if (caller.link()) return std::max(ideal, RatioOfAll(caller, reference).Of(bound));
  return ideal + ForwardRatio(caller.problem(), reference.problem()).Of(Repeated(bound, reference));
}

Nanos ExpectedUnder(const Instance& caller, const Instance& reference, Nanos makespan) {
  constexpr int64_t kTiny = 100;
  Nanos total;
  ForEachStep(reference.problem(), [&total](const auto& step) {
    if (Repeatable(step)) total += step.forward_time;
  });
  LeastRatio ratio;
  Nanos ours, theirs;
  const auto add = [&](Nanos asked, Nanos known) {
    if (known.value() >= total.value() / kTiny) {
      ratio.Add(asked, known);
    } else {
      ours += asked;
      theirs += known;
    }
  };
  AllSteps(caller.problem(), reference.problem(), [&](const auto& asked, const auto& known) {
    if (!Repeatable(asked)) return true;
    add(asked.forward_time, known.forward_time);
    if (known.stops()) add(asked.stopped_time(), known.stopped_time());
    return true;
  });
  ratio.Add(ours, theirs);
  if (caller.link() && reference.link()) {
    AddCopy(*caller.link(), *reference.link(), MeanTensor(caller.problem()), &ratio);
  }
  return IdealTime(caller.problem()) + ratio.Of(Repeated(makespan, reference));
}

}  // namespace stowage
