#include "server/entries/reference_costs.h"

#include <algorithm>
#include <utility>

#include "absl/numeric/int128.h"
#include "server/entries/median.h"
#include "server/entries/reports.h"
#include "server/entries/step_pairs.h"

namespace stowage {
namespace {

constexpr int64_t kFar = 4;             // times the median: no profile of the same program
constexpr uint64_t kHeardWhenFull = 8;  // one new job in so many
constexpr int64_t kLeastMove = 50;      // one part in so many

using Costs = std::vector<const Instance*>;

// The largest but one.
template <class T>
T UpperQuantile(std::vector<T> values) {
  const auto second =
      values.end() - static_cast<std::ptrdiff_t>(std::min<size_t>(values.size(), 2));
  std::nth_element(values.begin(), second, values.end());
  return *second;
}

bool Agrees(Nanos total, Nanos median) {
  return total.value() <= kFar * median.value() && kFar * total.value() >= median.value();
}

// Of the samples, those whose total time is near the median's.
Costs Agreeing(const std::vector<CostSample>& samples) {
  Costs agreeing;
  if (samples.empty()) return agreeing;
  std::vector<Nanos> totals;
  for (const CostSample& sample : samples) totals.push_back(IdealTime(sample.costs->problem()));
  const Nanos median = LowerMedian(totals);
  for (size_t i = 0; i < samples.size(); ++i) {
    if (Agrees(totals[i], median)) agreeing.push_back(samples[i].costs.get());
  }
  return agreeing;
}

// Stops early if it does in all samples.
template <class Step>
void SetStoppedRecompute(const std::vector<const Step*>& measured, Step* step) {
  step->recompute_saving_time.reset();
  step->recompute_saving_overhead.reset();
  std::vector<Nanos> times;
  std::vector<Bytes> overheads;
  for (const Step* sample : measured) {
    if (!sample->stops()) return;
    times.push_back(sample->stopped_time());
    overheads.push_back(sample->stopped_overhead());
  }
  step->recompute_saving_time = LowerMedian(std::move(times));
  step->recompute_saving_overhead = UpperQuantile(std::move(overheads));
}

// The costs of one step, of all samples; Step is Stage or Vertex.
template <class Step>
void SetCosts(const std::vector<const Step*>& measured, Step* step) {
  const auto all = [&measured](auto member) {
    std::vector<std::decay_t<decltype(step->*member)>> values;
    for (const Step* sample : measured) values.push_back(sample->*member);
    return values;
  };
  for (Nanos Step::*time : {&Step::forward_time, &Step::backward_time}) {
    step->*time = LowerMedian(all(time));
  }
  for (Bytes Step::*overhead :
       {&Step::forward_saving_overhead, &Step::forward_overhead, &Step::backward_overhead}) {
    step->*overhead = UpperQuantile(all(overhead));
  }
  SetStoppedRecompute(measured, step);
}

template <class Kind>
auto StepsAt(const Costs& samples, int i) {
  std::vector<std::decay_t<decltype(&StepAt(std::declval<const Kind&>(), 0))>> steps;
  for (const Instance* sample : samples) {
    steps.push_back(&StepAt(std::get<Kind>(sample->problem()), i));
  }
  return steps;
}

absl::StatusOr<Problem> ProblemOf(const Chain& first, const Costs& samples) {
  ChainSpec spec = first.spec();
  for (int i = 0; i <= first.length(); ++i) {
    Stage* stage = i < first.length() ? &spec.stages[static_cast<size_t>(i)] : &spec.loss;
    SetCosts(StepsAt<Chain>(samples, i), stage);
  }
  return Chain::Create(std::move(spec));
}

// Vertices by position: each sender numbers its own.
absl::StatusOr<Problem> ProblemOf(const Graph& first, const Costs& samples) {
  GraphSpec spec;
  spec.name = first.name();
  spec.has_backwards = first.has_backwards();
  for (int p = 0; p < first.size(); ++p) {
    spec.vertices.push_back(first.vertex(p));
    spec.vertices.back().id = p;
    SetCosts(StepsAt<Graph>(samples, p), &spec.vertices.back());
  }
  return Graph::Create(std::move(spec));
}

CopyCost MedianCopy(const std::vector<CopyCost>& costs) {
  std::vector<int64_t> speeds;
  std::vector<Nanos> latencies;
  for (const CopyCost& cost : costs) {
    speeds.push_back(cost.bytes_per_second);
    latencies.push_back(cost.latency);
  }
  return {LowerMedian(std::move(speeds)), LowerMedian(std::move(latencies))};
}

std::optional<TransferModel> LinkOf(const Costs& samples) {
  std::vector<CopyCost> to_host, to_device;
  std::optional<TransferModel> link;
  for (const Instance* sample : samples) {
    if (!sample->link()) continue;
    link = sample->link();
    to_host.push_back(link->to_host);
    to_device.push_back(link->to_device);
  }
  if (2 * to_host.size() <= samples.size()) return std::nullopt;
  link->to_host = MedianCopy(to_host);
  link->to_device = MedianCopy(to_device);
  return link;
}

bool Near(int64_t a, int64_t b) {
  return absl::int128(kLeastMove) * std::max(a - b, b - a) <= std::max(a, b);
}

bool NearCost(const CopyCost& a, const CopyCost& b) {
  return Near(a.bytes_per_second, b.bytes_per_second) && Near(a.latency.value(), b.latency.value());
}

bool NearLink(const Instance& a, const Instance& b) {
  if (!a.link() || !b.link()) return !a.link() && !b.link();
  return NearCost(a.link()->to_host, b.link()->to_host) &&
         NearCost(a.link()->to_device, b.link()->to_device);
}

uint64_t HashOf(const std::string& text) {
  const Digest digest = Sha256(text);
  uint64_t hash = 0;
  for (size_t i = 0; i < sizeof(hash); ++i) hash = hash << 8 | digest.bytes()[i];
  return std::max<uint64_t>(hash, 1);
}

int64_t Distance(Nanos a, Nanos b) { return std::max(a, b).value() - std::min(a, b).value(); }

}  // namespace

uint64_t JobHash(const std::string& job, const std::string& identity) {
  if (identity.empty()) return job.empty() ? 0 : HashOf(job);
  return HashOf(Sha256(identity).ToHex() + job);
}

uint64_t IdentityHash(const std::string& identity) {
  return identity.empty() ? 0 : HashOf(identity);
}

bool HasHeardOthers(const PlanEntry& entry, uint64_t identity) {
  const auto is_other = [identity](const auto& sample) {
    return sample.identity != 0 && sample.identity != identity;
  };
  return std::any_of(entry.samples.begin(), entry.samples.end(), is_other) ||
         std::any_of(entry.reports.begin(), entry.reports.end(), is_other);
}

size_t VoicesOf(const PlanEntry& entry, uint64_t identity) {
  return HasHeardOthers(entry, identity) ? kQuorum - 1 : kQuorum;
}

size_t SampleLimit(const Problem& problem) {
  return std::clamp(kMostSampledSteps / static_cast<size_t>(StepCount(problem)), kQuorum,
                    kMostSamples);
}

SampleVerdict JudgeSample(const PlanEntry& entry, const Instance& costs, uint64_t job,
                          uint64_t identity) {
  const Nanos total = IdealTime(costs.problem());
  if (entry.frozen || total == Nanos(0)) return SampleVerdict::kUnusable;
  if (&costs == entry.reference.get()) return SampleVerdict::kKnown;
  // The bytes that a key hashes are not held against the costs beside them: who forges an entry may pair any two.
  const Problem& known = entry.reference->problem();
  if (known.index() != costs.problem().index() || StepCount(known) != StepCount(costs.problem())) {
    return SampleVerdict::kUnusable;
  }
  if (!ProfileWanted(entry)) {
    size_t voices = 0;
    for (const CostSample& sample : entry.samples) {
      if (sample.job == job) return SampleVerdict::kKnown;
      if (identity != 0 && sample.identity == identity) ++voices;
    }
    if (voices >= VoicesOf(entry, identity)) return SampleVerdict::kKnown;
    const bool full = entry.samples.size() >= SampleLimit(costs.problem());
    if (full && job % kHeardWhenFull != 0) return SampleVerdict::kKnown;
  }
  const Costs agreeing = Agreeing(entry.samples);
  if (agreeing.size() < kQuorum) return SampleVerdict::kNew;
  std::vector<Nanos> totals;
  for (const Instance* sample : agreeing) totals.push_back(IdealTime(sample->problem()));
  return Agrees(total, LowerMedian(std::move(totals))) ? SampleVerdict::kNew
                                                       : SampleVerdict::kOutlier;
}

std::optional<Instance> ReferenceOf(const std::vector<CostSample>& samples) {
  const Costs agreeing = Agreeing(samples);
  if (agreeing.size() < kQuorum) return std::nullopt;
  absl::StatusOr<Problem> problem =
      std::visit([&agreeing](const auto& first) { return ProblemOf(first, agreeing); },
                 agreeing.front()->problem());
  // The figures are those of valid problems; their sums may still be too large for one.
  if (!problem.ok()) return std::nullopt;
  return Instance{*std::move(problem), LinkOf(agreeing)};
}

bool MovesFrom(const Instance& now, const Instance& next) {
  if (!NearLink(now, next)) return true;
  int64_t distance = 0;
  const bool same_overheads =
      AllSteps(now.problem(), next.problem(), [&distance](const auto& x, const auto& y) {
        distance +=
            Distance(x.forward_time, y.forward_time) + Distance(x.backward_time, y.backward_time);
        if (x.stops()) distance += Distance(x.stopped_time(), y.stopped_time());
        return x.stops() == y.stops() && x.stopped_overhead() == y.stopped_overhead() &&
               x.forward_saving_overhead == y.forward_saving_overhead &&
               x.forward_overhead == y.forward_overhead &&
               x.backward_overhead == y.backward_overhead;
      });
  return !same_overheads || absl::int128(kLeastMove) * distance > IdealTime(now.problem()).value();
}

}  // namespace stowage
