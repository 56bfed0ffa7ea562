// What an agent costs a training job: time outside the schedule in each step, time to the first planned
// step when the plan is cached and when it is not. Against plain steps made in turn, over a real stowaged.
//
// usage: agent_times [network] [image side] [batch] [rounds] [budget]     medians over the rounds
#include <ATen/Parallel.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/agent/agent.h"
#include "client/models/models.h"
#include "client/torch/execute/executor.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/profile/median.h"
#include "tests/support/stowaged_process.h"

namespace stowage {
namespace {

using Clock = std::chrono::steady_clock;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}
double Seconds(Nanos nanos) { return static_cast<double>(nanos.value()) / 1e9; }

struct Workload {
  ChainModel model;
  Sample sample;
  Budget budget;
};

// Seconds, one of each per round.
struct Times {
  std::vector<double> plain;
  std::vector<double> hit, hit_structure, hit_request, hit_known;
  std::vector<double> hit_measured;  // without shapes
  std::vector<double> miss, miss_solve;
  std::vector<double> outside;        // of a step: what is not in the schedule
  std::vector<double> over_executor;  // a step of the agent over one of the bare executor
};

double PlainTime(const Workload& work) {
  std::vector<double> times;
  for (int i = 0; i < 3; ++i) {
    const Clock::time_point start = Clock::now();
    if (!PlainStep(work.model, work.sample.input, work.sample.target).ok()) std::abort();
    times.push_back(Since(start));
  }
  return Median(std::move(times));
}

AgentOptions OptionsFor(const StowagedProcess& server, std::vector<AgentEvent>* events) {
  AgentOptions options;
  options.server.address = server.address();
  options.on_event = [events](const AgentEvent& event) { events->push_back(event); };
  return options;
}

// A new job: from having its batch to being about to make its first step.
double FirstPlan(const Workload& work, Agent* agent, AdoptedPlan* adopted) {
  const Clock::time_point start = Clock::now();
  absl::StatusOr<AdoptedPlan> plan =
      agent->Plan(work.sample.input, work.sample.target, work.budget);
  const double time = Since(start);
  if (!plan.ok() || plan->plan.status != PlanStatus::kFound) {
    std::fprintf(stderr, "no plan: %s\n",
                 plan.ok() ? ToString(plan->plan.status) : plan.status().ToString().c_str());
    std::abort();
  }
  *adopted = *std::move(plan);
  return time;
}

void MeasureSteps(const Workload& work, Agent* agent, const AdoptedPlan& adopted, Times* times) {
  const auto executor = Executor::Create(&work.model, std::get<Chain>(agent->profile()->problem),
                                         adopted.plan.schedule);
  if (!executor.ok()) std::abort();
  for (int i = 0; i < 4; ++i) {
    Clock::time_point start = Clock::now();
    if (!(*executor)->Step(work.sample.input, work.sample.target).ok()) std::abort();
    const double bare = Since(start);
    start = Clock::now();
    const absl::StatusOr<StepReport> report = agent->Step(work.sample.input, work.sample.target);
    const double whole = Since(start);
    if (!report.ok()) std::abort();
    times->outside.push_back((whole - Seconds(report->wall_time)) / whole);
    times->over_executor.push_back(whole / bare);
  }
}

void Round(const Workload& work, Times* times) {
  times->plain.push_back(PlainTime(work));
  const StowagedProcess server;
  std::vector<AgentEvent> events;
  AdoptedPlan adopted;
  {
    Agent first(&work.model, OptionsFor(server, &events));
    times->miss.push_back(FirstPlan(work, &first, &adopted));
    times->miss_solve.push_back(Seconds(adopted.request_time));
    if (adopted.source != PlanSource::kSolved) std::abort();
  }
  events.clear();
  Agent second(&work.model, OptionsFor(server, &events));
  times->hit.push_back(FirstPlan(work, &second, &adopted));
  if (adopted.source != PlanSource::kCache) std::abort();
  times->hit_request.push_back(Seconds(adopted.request_time));
  const auto& structure = std::get<ProfileTakenEvent>(events.at(0));
  if (!structure.from_shapes) std::abort();
  times->hit_structure.push_back(Seconds(structure.time));
  AdoptedPlan measured;
  AgentOptions by_bytes = OptionsFor(server, &events);
  by_bytes.plan_by_shapes = false;
  Agent without(&work.model, std::move(by_bytes));
  times->hit_measured.push_back(FirstPlan(work, &without, &measured));
  if (measured.key != adopted.key) std::abort();
  if (!second.Profile(work.sample.input, work.sample.target).ok()) std::abort();
  Agent third(&work.model, OptionsFor(server, &events));
  if (!third.UseProfile({{work.sample.input}, work.sample.target}, *second.profile()).ok())
    std::abort();
  times->hit_known.push_back(FirstPlan(work, &third, &adopted));
  MeasureSteps(work, &second, adopted, times);
}

void Print(const Times& times) {
  const double plain = Median(times.plain);
  const double miss = Median(times.miss);
  const double solve = Median(times.miss_solve);
  const double hit = Median(times.hit);
  const double structure = Median(times.hit_structure);
  std::printf("plain step %.3f s\n", plain);
  std::printf("step: outside the schedule %.3f%% of it; over the bare executor %.4f\n",
              100 * Median(times.outside), Median(times.over_executor));
  std::printf(
      "hit: %.1f ms to the first step, of it %.1f ms the structure from shapes, %.1f ms the "
      "request, "
      "%.1f ms the rest\n",
      1e3 * hit, 1e3 * structure, 1e3 * Median(times.hit_request),
      1e3 * (hit - structure - Median(times.hit_request)));
  std::printf("hit where the bytes are measured: %.3f s\n", Median(times.hit_measured));
  std::printf("hit with a profile that was kept: %.1f ms\n", 1e3 * Median(times.hit_known));
  std::printf("miss: %.3f s, of it %.3f s asking and solving; the rest is %.2f plain steps\n", miss,
              solve, (miss - solve) / plain);
}

int Run(const std::string& name, int64_t side, int64_t batch, int rounds,
        const std::string& budget) {
  TrackingAllocator::Install();
  at::set_num_threads(1);
  constexpr int64_t kClasses = 1000;
  absl::StatusOr<ChainModel> model = MakeModel(name, {kClasses, 0, side});
  const absl::StatusOr<Sample> sample = MakeImageSample(batch, side, kClasses, 0);
  const absl::StatusOr<Budget> parsed = ParseBudget(budget);
  if (!model.ok() || !sample.ok() || !parsed.ok()) {
    std::fprintf(stderr, "%s %s %s\n", model.status().ToString().c_str(),
                 sample.status().ToString().c_str(), parsed.status().ToString().c_str());
    return 2;
  }
  const Workload work{*std::move(model), *sample, *parsed};
  Times times;
  PlainTime(work);  // warms up
  for (int i = 0; i < rounds; ++i) Round(work, &times);
  std::printf("%s, %lld images of %lld, within %s, %d rounds\n", name.c_str(),
              static_cast<long long>(batch), static_cast<long long>(side), budget.c_str(), rounds);
  Print(times);
  return 0;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  const auto argument = [&](int i, const char* otherwise) {
    return std::string(i < argc ? argv[i] : otherwise);
  };
  return stowage::Run(argument(1, "resnet18"), std::atoll(argument(2, "224").c_str()),
                      std::atoll(argument(3, "4").c_str()), std::atoi(argument(4, "5").c_str()),
                      argument(5, "80%"));
}
