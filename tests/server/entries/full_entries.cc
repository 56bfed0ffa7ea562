#include "tests/server/entries/full_entries.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "solvers/schedule/instance.h"
#include "solvers/schedule/simulation.h"

namespace stowage::testing {
namespace {

Chain FullChain(int64_t jitter) {
  ChainSpec spec;
  spec.name = "a chain";
  spec.input = Bytes(70);
  spec.input_gradient = Bytes(30);
  for (int l = 1; l <= 3; ++l) {
    Stage stage;
    stage.forward_time = Nanos(1000 * l + jitter);
    stage.backward_time = Nanos((int64_t{1} << 40) + l);
    stage.output = Bytes(100 + l);
    stage.saved = Bytes(400 + l);
    stage.output_gradient = Bytes(90 + l);
    stage.forward_saving_overhead = Bytes(10 + l);
    stage.forward_overhead = Bytes(20 + l);
    stage.backward_overhead = Bytes(30 + l);
    stage.transient_parameters = Bytes(l);
    stage.random = l == 1;
    stage.stateful = l == 2;
    stage.collective = l == 3;
    stage.must_keep = l == 1;
    stage.name = "stage " + std::to_string(l);
    stage.op_kind = std::string("kind\0", 5) + std::to_string(l);
    spec.stages.push_back(stage);
  }
  spec.stages[1].saved_tensors = {Bytes(100), Bytes(0), Bytes(50)};
  spec.loss.forward_time = Nanos(5);
  spec.loss.backward_time = Nanos(7);
  return *Chain::Create(std::move(spec));
}

TransferModel FullLink() {
  TransferModel link;
  link.to_host = {12345678901, Nanos(11)};
  link.to_device = {98765432109, Nanos(22)};
  link.full_duplex = true;
  link.host_memory = Bytes(int64_t{1} << 41);
  return link;
}

Graph FullGraph() {
  GraphSpec spec;
  spec.name = "a graph";
  for (int i = 0; i < 5; ++i) {
    Vertex v;
    v.id = 1000 - 7 * i;
    v.name = "v" + std::to_string(i);
    v.op_kind = "op" + std::to_string(i % 2);
    v.program_order = 10 * i + 3;
    if (i > 0) v.inputs.push_back({1000 - 7 * (i - 1), i % 2 == 0});
    if (i > 2) v.inputs.push_back({1000, true});
    v.output = Bytes(100 + i);
    v.output_gradient = Bytes(50 + i);
    v.extra_saved = Bytes(10 + i);
    v.backward_needs_output = i == 1;
    v.forward_time = Nanos(100 + i);
    v.backward_time = Nanos(200 + i);
    v.forward_saving_overhead = Bytes(i);
    v.forward_overhead = Bytes(2 * i);
    v.backward_overhead = Bytes(3 * i);
    v.alias = i == 2 ? AliasKind::kView : AliasKind::kNone;
    v.linear_multi_input = i == 3;
    v.random = i == 0;
    v.stateful = i == 1;
    v.collective = i == 2;
    v.must_keep = i == 4;
    v.transient_parameters = Bytes(4 * i);
    spec.vertices.push_back(v);
  }
  return *Graph::Create(std::move(spec));
}

Graph FullDag() {
  GraphSpec spec = FullGraph().spec();
  spec.has_backwards = false;
  for (Vertex& v : spec.vertices) {
    for (GraphInput& input : v.inputs) input.backward_needs = false;
    v.backward_needs_output = v.linear_multi_input = false;
    v.output_gradient = v.extra_saved = v.forward_saving_overhead = v.backward_overhead = Bytes(0);
    v.backward_time = Nanos(0);
    v.result = v.program_order > 20;
  }
  return *Graph::Create(std::move(spec));
}

// Store-all, with a copy to the host and back where there is a link.
Schedule ScheduleOf(const Instance& instance) {
  Schedule schedule = instance.store_all_schedule();
  if (!instance.link()) return schedule;
  const Schedule copies = {
      OffloadStart(TensorKind::kSaved, 2, 3), OffloadWait(TensorKind::kSaved, 2, 3),
      PrefetchStart(TensorKind::kSaved, 2, 3), PrefetchWait(TensorKind::kSaved, 2, 3)};
  for (size_t i = 0; i < schedule.size(); ++i) {
    if (schedule[i].op != Op::kBackward) continue;
    schedule.insert(schedule.begin() + static_cast<ptrdiff_t>(i), copies.begin(), copies.end());
    break;
  }
  return schedule;
}

Plan FoundPlan(const PlanEntry& entry, int64_t revision) {
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule = ScheduleOf(*entry.reference);
  plan.budget = entry.store_all.peak + Bytes(1000);
  plan.revision = revision;
  plan.bounds.schedule_class = "some schedules";
  plan.bounds.least_budget = Bytes(3);
  plan.provenance = {"a solver", "1.2.3", Nanos(123456789), 500};
  plan.explanation = "because";
  const absl::Status status = ValidatePlan(*entry.reference, &plan);
  EXPECT_TRUE(status.ok()) << status;
  plan.bounds.proven_optimal = revision == 1;  // both values are written
  return plan;
}

Plan PlanWithout(const PlanEntry& entry, PlanStatus status) {
  Plan plan = FoundPlan(entry, 9);
  plan.status = status;
  plan.schedule.clear();
  plan.prediction = Simulation();
  plan.budget = Bytes(17);
  plan.bounds.least_budget = Bytes(18);
  return plan;
}

PlanEntry EntryWith(Instance reference, const std::string& canonical) {
  PlanEntry entry;
  entry.canonical = canonical;
  entry.reference = std::make_shared<const Instance>(std::move(reference));
  entry.store_all = *Instance(entry.reference->problem()).store_all();
  const auto add = [&entry](Plan plan, RevisionState state, bool pinned) {
    entry.plans.push_back({std::make_shared<const Plan>(std::move(plan)), state, pinned});
  };
  add(FoundPlan(entry, 1), RevisionState::kServing, true);
  add(FoundPlan(entry, 2), RevisionState::kShadow, false);
  add(PlanWithout(entry, PlanStatus::kProvenInfeasible), RevisionState::kRetired, false);
  add(PlanWithout(entry, PlanStatus::kNotFound), RevisionState::kServing, false);
  entry.least_budget = Bytes(0);
  entry.reports = {{~uint64_t{0}, Bytes(5), -3, 1.0 / 3.0, 5e-324, 7, ~uint64_t{1}},
                   {0, Bytes(6), 4, 1e300, -0.0, int64_t{1} << 40, 0}};
  entry.profile_wanted = true;
  entry.tenant = "a tenant";
  entry.name = "n\xc3\xa4me";
  entry.frozen = true;
  entry.generation = int64_t{1} << 62;
  return entry;
}

template <class T>
void ExpectSame(const T& a, const T& b) {
  EXPECT_EQ(std::memcmp(&a, &b, sizeof a), 0);
}

void ExpectEqualStages(const Stage& a, const Stage& b) {
  EXPECT_EQ(a.forward_time, b.forward_time);
  EXPECT_EQ(a.backward_time, b.backward_time);
  EXPECT_EQ(a.output, b.output);
  EXPECT_EQ(a.saved, b.saved);
  EXPECT_EQ(a.output_gradient, b.output_gradient);
  EXPECT_EQ(a.forward_saving_overhead, b.forward_saving_overhead);
  EXPECT_EQ(a.recompute_saving_time, b.recompute_saving_time);
  EXPECT_EQ(a.recompute_saving_overhead, b.recompute_saving_overhead);
  EXPECT_EQ(a.forward_overhead, b.forward_overhead);
  EXPECT_EQ(a.backward_overhead, b.backward_overhead);
  EXPECT_EQ(a.random, b.random);
  EXPECT_EQ(a.stateful, b.stateful);
  EXPECT_EQ(a.collective, b.collective);
  EXPECT_EQ(a.must_keep, b.must_keep);
  EXPECT_EQ(a.transient_parameters, b.transient_parameters);
  EXPECT_EQ(a.saved_tensors, b.saved_tensors);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.op_kind, b.op_kind);
}

void ExpectEqualProblems(const Chain& a, const Chain& b) {
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.activation(0), b.activation(0));
  EXPECT_EQ(a.gradient(0), b.gradient(0));
  ASSERT_EQ(a.length(), b.length());
  for (int l = 1; l <= a.length() + 1; ++l) ExpectEqualStages(a.stage(l), b.stage(l));
}

void ExpectEqualVertices(const Vertex& a, const Vertex& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.op_kind, b.op_kind);
  EXPECT_EQ(a.program_order, b.program_order);
  ASSERT_EQ(a.inputs.size(), b.inputs.size());
  for (size_t i = 0; i < a.inputs.size(); ++i) {
    EXPECT_EQ(a.inputs[i].vertex, b.inputs[i].vertex);
    EXPECT_EQ(a.inputs[i].backward_needs, b.inputs[i].backward_needs);
  }
  EXPECT_EQ(a.output, b.output);
  EXPECT_EQ(a.output_gradient, b.output_gradient);
  EXPECT_EQ(a.extra_saved, b.extra_saved);
  EXPECT_EQ(a.backward_needs_output, b.backward_needs_output);
  EXPECT_EQ(a.forward_time, b.forward_time);
  EXPECT_EQ(a.backward_time, b.backward_time);
  EXPECT_EQ(a.forward_saving_overhead, b.forward_saving_overhead);
  EXPECT_EQ(a.recompute_saving_time, b.recompute_saving_time);
  EXPECT_EQ(a.recompute_saving_overhead, b.recompute_saving_overhead);
  EXPECT_EQ(a.forward_overhead, b.forward_overhead);
  EXPECT_EQ(a.backward_overhead, b.backward_overhead);
  EXPECT_EQ(a.alias, b.alias);
  EXPECT_EQ(a.result, b.result);
  EXPECT_EQ(a.linear_multi_input, b.linear_multi_input);
  EXPECT_EQ(a.random, b.random);
  EXPECT_EQ(a.stateful, b.stateful);
  EXPECT_EQ(a.collective, b.collective);
  EXPECT_EQ(a.must_keep, b.must_keep);
  EXPECT_EQ(a.transient_parameters, b.transient_parameters);
}

void ExpectEqualProblems(const Graph& a, const Graph& b) {
  EXPECT_EQ(a.name(), b.name());
  EXPECT_EQ(a.has_backwards(), b.has_backwards());
  ASSERT_EQ(a.size(), b.size());
  for (int p = 0; p < a.size(); ++p) ExpectEqualVertices(a.vertex(p), b.vertex(p));
}

void ExpectEqualLinked(const Instance& a, const Instance& b) {
  ASSERT_EQ(a.problem().index(), b.problem().index());
  if (const Graph* graph = std::get_if<Graph>(&a.problem())) {
    ExpectEqualProblems(*graph, std::get<Graph>(b.problem()));
  } else {
    ExpectEqualProblems(std::get<Chain>(a.problem()), std::get<Chain>(b.problem()));
  }
  ASSERT_EQ(a.link().has_value(), b.link().has_value());
  if (!a.link()) return;
  EXPECT_EQ(a.link()->to_host.bytes_per_second, b.link()->to_host.bytes_per_second);
  EXPECT_EQ(a.link()->to_host.latency, b.link()->to_host.latency);
  EXPECT_EQ(a.link()->to_device.bytes_per_second, b.link()->to_device.bytes_per_second);
  EXPECT_EQ(a.link()->to_device.latency, b.link()->to_device.latency);
  EXPECT_EQ(a.link()->full_duplex, b.link()->full_duplex);
  EXPECT_EQ(a.link()->host_memory, b.link()->host_memory);
}

void ExpectEqualSimulations(const Simulation& a, const Simulation& b) {
  EXPECT_EQ(a.makespan, b.makespan);
  EXPECT_EQ(a.peak, b.peak);
  EXPECT_EQ(a.recompute_time, b.recompute_time);
  EXPECT_EQ(a.idle_time, b.idle_time);
  EXPECT_EQ(a.recomputed_forwards, b.recomputed_forwards);
  EXPECT_EQ(a.peak_instruction, b.peak_instruction);
  EXPECT_EQ(a.host_peak, b.host_peak);
  EXPECT_EQ(a.offloaded, b.offloaded);
  EXPECT_EQ(a.prefetched, b.prefetched);
  EXPECT_EQ(a.communication_time, b.communication_time);
}

void ExpectEqualPlans(const Plan& a, const Plan& b) {
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.budget, b.budget);
  EXPECT_EQ(a.schedule, b.schedule);
  ExpectEqualSimulations(a.prediction, b.prediction);
  EXPECT_EQ(a.bounds.store_all_makespan, b.bounds.store_all_makespan);
  EXPECT_EQ(a.bounds.store_all_peak, b.bounds.store_all_peak);
  EXPECT_EQ(a.bounds.lower_bound, b.bounds.lower_bound);
  EXPECT_EQ(a.bounds.proven_optimal, b.bounds.proven_optimal);
  EXPECT_EQ(a.bounds.schedule_class, b.bounds.schedule_class);
  EXPECT_EQ(a.bounds.least_budget, b.bounds.least_budget);
  EXPECT_EQ(a.provenance.solver, b.provenance.solver);
  EXPECT_EQ(a.provenance.solver_version, b.provenance.solver_version);
  EXPECT_EQ(a.provenance.solve_time, b.provenance.solve_time);
  EXPECT_EQ(a.provenance.slots, b.provenance.slots);
  EXPECT_EQ(a.revision, b.revision);
  EXPECT_EQ(a.explanation, b.explanation);
}

}  // namespace

PlanEntry FullChainEntry() {
  PlanEntry entry = EntryWith({FullChain(0), FullLink()}, "canonical bytes");
  entry.samples = {
      {1, std::make_shared<const Instance>(Instance{FullChain(1), FullLink()}), 3},
      {~uint64_t{0}, std::make_shared<const Instance>(Instance{FullChain(2), std::nullopt})}};
  FrontierBuilder builder(*entry.reference);
  EXPECT_TRUE(builder.Add(entry.plans[0].plan->schedule).ok());
  entry.frontier = std::make_shared<const Frontier>(
      builder.Build({"a solver", "some schedules", Bytes(12), true, 500}));
  return entry;
}

PlanEntry FullGraphEntry() { return EntryWith({FullGraph(), std::nullopt}, "of a graph"); }

PlanEntry FullDagEntry() { return EntryWith({FullDag(), std::nullopt}, "of a compute DAG"); }

void ExpectEqualEntries(const PlanEntry& a, const PlanEntry& b) {
  EXPECT_EQ(a.canonical, b.canonical);
  ExpectEqualLinked(*a.reference, *b.reference);
  ExpectEqualSimulations(a.store_all, b.store_all);
  EXPECT_EQ(a.least_budget, b.least_budget);
  ASSERT_EQ(a.plans.size(), b.plans.size());
  for (size_t i = 0; i < a.plans.size(); ++i) {
    ExpectEqualPlans(*a.plans[i].plan, *b.plans[i].plan);
    EXPECT_EQ(a.plans[i].state, b.plans[i].state);
    EXPECT_EQ(a.plans[i].pinned, b.plans[i].pinned);
  }
  ASSERT_EQ(a.samples.size(), b.samples.size());
  for (size_t i = 0; i < a.samples.size(); ++i) {
    EXPECT_EQ(a.samples[i].job, b.samples[i].job);
    EXPECT_EQ(a.samples[i].identity, b.samples[i].identity);
    ExpectEqualLinked(*a.samples[i].costs, *b.samples[i].costs);
  }
  ASSERT_EQ(a.reports.size(), b.reports.size());
  for (size_t i = 0; i < a.reports.size(); ++i) {
    EXPECT_EQ(a.reports[i].job, b.reports[i].job);
    EXPECT_EQ(a.reports[i].budget, b.reports[i].budget);
    EXPECT_EQ(a.reports[i].revision, b.reports[i].revision);
    ExpectSame(a.reports[i].time_ratio, b.reports[i].time_ratio);
    ExpectSame(a.reports[i].peak_ratio, b.reports[i].peak_ratio);
    EXPECT_EQ(a.reports[i].steps, b.reports[i].steps);
    EXPECT_EQ(a.reports[i].identity, b.reports[i].identity);
  }
  ASSERT_EQ(a.frontier == nullptr, b.frontier == nullptr);
  if (a.frontier) {
    EXPECT_EQ(a.frontier->Encode(), b.frontier->Encode());
  }
  EXPECT_EQ(a.tenant, b.tenant);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.frozen, b.frozen);
  EXPECT_EQ(a.profile_wanted, b.profile_wanted);
  EXPECT_EQ(a.generation, b.generation);
}

}  // namespace stowage::testing
