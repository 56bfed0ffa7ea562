#include "tests/solvers/transfer/random_offload.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <utility>

namespace stowage::testing {
namespace {

constexpr int64_t kBytePerNano = 1000000000;

int Draw(int low, int high, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int>(low, high)(*rng);
}

CopyCost RandomCost(const RandomOffloadOptions& o, std::mt19937_64* rng) {
  CopyCost cost;
  cost.bytes_per_second = kBytePerNano >> Draw(0, o.max_halvings, rng);
  if (o.fast_links && Draw(0, 2, rng) == 0) cost.bytes_per_second = 2 * kBytePerNano;
  cost.latency = Nanos(Draw(0, o.max_latency, rng));
  return cost;
}

}  // namespace

OffloadProblem RandomOffload(int ops, const RandomOffloadOptions& options, std::mt19937_64* rng) {
  OffloadSpec spec;
  Bytes all;
  for (int i = 0; i <= ops; ++i) {
    spec.activations.push_back(Bytes(Draw(0, options.max_size, rng)));
    all += spec.activations.back();
  }
  for (int i = 0; i < ops; ++i) {
    OffloadOp op;
    op.forward_time = Nanos(Draw(0, options.max_time, rng));
    op.backward_time = Nanos(Draw(0, options.max_time, rng));
    op.forward_need = Bytes(Draw(0, options.max_need, rng));
    op.backward_need = Bytes(Draw(0, options.max_need, rng));
    spec.ops.push_back(op);
  }
  spec.link.to_host = RandomCost(options, rng);
  spec.link.to_device = RandomCost(options, rng);
  spec.link.full_duplex = options.full_duplex;
  spec.link.host_memory =
      options.limited_host ? Bytes(Draw(0, static_cast<int>(all.value()), rng)) : all;
  const OffloadProblem whole = *OffloadProblem::Create(spec);
  spec.memory = Bytes(Draw(static_cast<int>(whole.least_memory().value()),
                           static_cast<int>(whole.peak().value()), rng));
  return *OffloadProblem::Create(std::move(spec));
}

OffloadProblem WithMemory(const OffloadProblem& problem, Bytes memory) {
  OffloadSpec spec = problem.spec();
  spec.memory = memory;
  return *OffloadProblem::Create(std::move(spec));
}

OffloadProblem WithLink(const OffloadProblem& problem, const TransferModel& link) {
  OffloadSpec spec = problem.spec();
  spec.link = link;
  return *OffloadProblem::Create(std::move(spec));
}

std::vector<OffloadSet> AllSets(const OffloadProblem& problem) {
  std::vector<OffloadSet> sets(size_t{1} << problem.size());
  for (size_t bits = 0; bits < sets.size(); ++bits) {
    for (int i = 0; i < problem.size(); ++i) {
      if ((bits >> i & 1) != 0) sets[bits].push_back(i);
    }
  }
  return sets;
}

std::string Describe(const OffloadProblem& problem, const OffloadSet& set) {
  std::ostringstream out;
  const TransferModel& link = problem.link();
  out << "memory=" << problem.memory().value() << " host=" << link.host_memory.value()
      << " B/s=" << link.to_host.bytes_per_second << "/" << link.to_device.bytes_per_second
      << " latency=" << link.to_host.latency.value() << "/" << link.to_device.latency.value()
      << " x:";
  for (int i = 0; i <= problem.size(); ++i) out << " " << problem.activation(i).value();
  for (int i = 0; i < problem.size(); ++i) {
    const OffloadOp& op = problem.op(i);
    out << " [u=" << op.forward_time.value() << "/" << op.backward_time.value()
        << " need=" << op.forward_need.value() << "/" << op.backward_need.value() << "]";
  }
  out << " set={";
  for (const int i : set) out << " " << i;
  out << " }";
  return out.str();
}

OffloadSet RandomSet(const TraceProblem& problem, std::mt19937_64* rng) {
  OffloadSet set;
  for (int i = 0; i < problem.problem.size(); ++i) {
    if (problem.tensor[static_cast<size_t>(i)] >= 0 && (*rng)() % 2 == 0) set.push_back(i);
  }
  return set;
}

bool OffloadsMeetPrefetches(const OffloadProblem& problem, const OffloadTimeline& timeline) {
  if (timeline.offloads.empty()) return false;
  const Nanos last = timeline.offloads.back().end, first = timeline.prefetches.front().start;
  const auto meet = [&](Nanos start, Nanos time) { return start < last && first < start + time; };
  for (int i = 0; i < problem.size(); ++i) {
    const size_t at = static_cast<size_t>(i);
    if (meet(timeline.forward_start[at], problem.op(i).forward_time)) return true;
    if (meet(timeline.backward_start[at], problem.op(i).backward_time)) return true;
  }
  return false;
}

}  // namespace stowage::testing
