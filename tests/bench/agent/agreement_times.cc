// How long ranks take to agree on a plan over a process group of gloo, on this machine, and how long many more would take
// whose messages come as slowly as they do here.
//
// usage: agreement_times [ranks] [stages] [rounds] [simulated ranks] [microseconds that a network adds to a message]
// Ranks are threads; the plan is there already, so what is timed is what they tell each other, and what each makes of it.
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "client/agent/agreed_terms.h"
#include "client/agent/group_agreement.h"
#include "solvers/planner.h"
#include "tests/client/agent/gloo_group.h"

namespace stowage {
namespace {

using Clock = std::chrono::steady_clock;
using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

OwnTerms TermsOf(int rank, int stages) {
  ChainSpec spec;
  spec.name = "many";
  spec.input = Bytes(1 << 20);
  for (int l = 0; l <= stages; ++l) {
    Stage stage;
    stage.op_kind = "block";
    stage.forward_time = Nanos(1000000 + 1000 * ((l + rank) % 7));
    stage.backward_time = Nanos(2000000);
    stage.output = stage.output_gradient = Bytes(1 << 20);
    stage.saved = Bytes(4 << 20);
    if (l < stages) {
      spec.stages.push_back(stage);
    } else {
      spec.loss = stage;
    }
  }
  Profile profile{"many", Device(), Chain::Create(std::move(spec)).value(), CostSource::kMeasured};
  return {profile, Bytes((int64_t{3} << 20) * stages - rank)};
}

ClientPlan AnswerFor(const AgreedTerms& terms) {
  PlanOptions options;
  options.recompute_only = true;
  ClientPlan answer;
  answer.reply.plan =
      MakePlan(InstanceOf(terms.profile, /*recompute_only=*/true), terms.budget, options).value();
  if (answer.reply.plan.status != PlanStatus::kFound) std::abort();
  return answer;
}

// Where no server has planned: whose step is slowest by the plan, and whether it is less slow by a plan of its own.
bool AgreeForTheSlowest(PlanAgreement* agreement, const std::string& answer) {
  const int last = agreement->ranks() - 1;
  if (!agreement->Greatest({agreement->rank()}).ok()) return false;
  if (!agreement->Greatest({-agreement->rank()}).ok()) return false;
  if (!BroadcastFrom(agreement, last, agreement->rank() == last ? answer : "").ok()) return false;
  return agreement->Greatest({agreement->rank()}).ok();
}

// Where the plan is from: a server had it, or rank 0 made it after all had measured times.
enum class PlanFrom { kCache, kRankZero };

// What AgreedPlanner has the ranks say and do, planning and measuring left out.
bool Agree(PlanAgreement* agreement, const OwnTerms& mine, const std::string& answer,
           PlanFrom from) {
  if (!AgreeToBegin(agreement, Beginning{}).ok()) return false;
  const bool made = from == PlanFrom::kRankZero;
  if (made) {
    if (!AgreeOnTerms(agreement, mine).ok()) return false;
    if (!BroadcastOrFail(agreement, std::string("measure")).ok()) return false;
    if (!AgreeToBegin(agreement, Beginning{}).ok()) return false;
  }
  const auto terms = AgreeOnTerms(agreement, mine);
  if (!terms.ok()) return false;
  const auto said = BroadcastOrFail(agreement, answer);
  if (!said.ok()) return false;
  const auto plan = DecodeAnswer(*said, *terms);
  if (!plan.ok()) return false;
  if (made && !AgreeForTheSlowest(agreement, answer)) return false;
  return AgreeOnDigest(agreement, ScheduleDigest(plan->reply.plan.schedule),
                       [](int) { return absl::InternalError(""); })
      .ok();
}

// Seconds, of the last rank, by round.
std::vector<double> TimesOf(int ranks, int stages, int rounds, const std::string& answer,
                            PlanFrom from) {
  std::vector<std::vector<Clock::time_point>> ends(static_cast<size_t>(rounds)), starts = ends;
  for (auto* const times : {&starts, &ends}) {
    for (auto& of_round : *times) of_round.resize(static_cast<size_t>(ranks));
  }
  OnGlooRanks(ranks, [&](int rank, Group group) {
    const auto agreement = MakeGroupAgreement(std::move(group)).value();
    const OwnTerms mine = TermsOf(rank, stages);
    for (int round = -1; round < rounds; ++round) {  // once to connect
      if (!agreement->Greatest({round}).ok()) std::abort();
      const Clock::time_point start = Clock::now();
      if (!Agree(agreement.get(), mine, answer, from)) std::abort();
      if (round < 0) continue;
      starts[static_cast<size_t>(round)][static_cast<size_t>(rank)] = start;
      ends[static_cast<size_t>(round)][static_cast<size_t>(rank)] = Clock::now();
    }
  });
  std::vector<double> times;
  for (size_t round = 0; round < ends.size(); ++round) {
    const auto first = *std::min_element(starts[round].begin(), starts[round].end());
    const auto last = *std::max_element(ends[round].begin(), ends[round].end());
    times.push_back(std::chrono::duration<double>(last - first).count());
  }
  return times;
}

// Seconds from one rank to another for a message of so many integers, each time it went there and back.
std::vector<double> LatenciesOf(int64_t integers) {
  constexpr int kTimes = 500;
  std::vector<double> latencies;
  OnGlooRanks(2, [&](int rank, const Group& group) {
    std::vector<at::Tensor> tensors = {at::zeros({integers}, at::kLong)};
    for (int time = 0; time < kTimes; ++time) {
      const Clock::time_point start = Clock::now();
      for (int way = 0; way < 2; ++way) {
        if (way == rank) {
          group->send(tensors, 1 - rank, 0)->wait();
        } else {
          group->recv(tensors, 1 - rank, 0)->wait();
        }
      }
      if (rank == 0 && time >= kTimes / 5) latencies.push_back(Since(start) / 2);
    }
  });
  return latencies;
}

// Messages along the binomial tree of GroupAgreement, one by one; a rank takes and sends one at a time.
class SimulatedGroup {
 public:
  SimulatedGroup(int ranks, double added_s)
      : ready_(static_cast<size_t>(ranks)), added_s_(added_s) {}

  void Up(const std::vector<double>& latencies) {
    for (size_t distance = 1; distance < ready_.size(); distance *= 2) {
      for (size_t rank = 0; rank + distance < ready_.size(); rank += 2 * distance) {
        double& taker = ready_[rank];
        taker = std::max(taker, ready_[rank + distance]) + Draw(latencies);
      }
    }
  }

  void Down(const std::vector<double>& latencies) {
    size_t distance = 1;
    while (distance < ready_.size()) distance *= 2;
    for (distance /= 2; distance > 0; distance /= 2) {
      for (size_t rank = 0; rank + distance < ready_.size(); rank += 2 * distance) {
        ready_[rank] += Draw(latencies);
        ready_[rank + distance] = ready_[rank];
      }
    }
  }

  // On all ranks.
  void Work(double seconds) {
    for (double& ready : ready_) ready += seconds;
  }

  double Last() const { return *std::max_element(ready_.begin(), ready_.end()); }

 private:
  double Draw(const std::vector<double>& latencies) {
    return latencies[random_() % latencies.size()] + added_s_;
  }

  std::vector<double> ready_;
  double added_s_;
  std::mt19937_64 random_{1};
};

double Simulated(int ranks, double added_s, int stages, size_t answer_bytes, double work_s,
                 PlanFrom from) {
  const std::vector<double> few = LatenciesOf(2);
  const std::vector<double> head = LatenciesOf(9);
  const std::vector<double> costs = LatenciesOf(7 * (stages + 1) + 6);
  const std::vector<double> answer = LatenciesOf(static_cast<int64_t>(answer_bytes / 8) + 1);
  SimulatedGroup group(ranks, added_s);
  group.Work(work_s);
  const auto all = [&](const std::vector<double>& latencies) {
    group.Up(latencies);
    group.Down(latencies);
  };
  const auto say = [&](const std::vector<double>& text) {
    group.Down(few);  // its length
    group.Down(text);
  };
  const bool made = from == PlanFrom::kRankZero;
  for (const bool timed : {false, true}) {
    if (!timed && !made) continue;
    for (const auto* const latencies : {&head, &head, &costs, &few}) all(*latencies);
    say(timed ? answer : few);
  }
  if (made) {  // for the slowest
    all(few);
    all(few);
    say(answer);
    all(few);
  }
  all(head);
  return group.Last();
}

int Main(int argc, char** argv) {
  const auto argument = [&](int i, int otherwise) {
    return argc > i ? std::atoi(argv[i]) : otherwise;
  };
  const int ranks = argument(1, 64);
  const int stages = argument(2, 100);
  const int rounds = argument(3, 15);
  const int simulated = argument(4, 10000);
  const int added_us = argument(5, 50);
  at::set_num_threads(1);
  AgreedTerms agreed{TermsOf(0, stages).profile, Bytes(0)};
  OnGlooRanks(ranks, [&](int rank, Group group) {
    const auto agreement = MakeGroupAgreement(std::move(group)).value();
    const auto all = AgreeOnTerms(agreement.get(), TermsOf(rank, stages));
    if (!all.ok()) std::abort();
    if (rank == 0) agreed = *all;
  });
  const std::string answer = EncodeAnswer(AnswerFor(agreed));
  for (const PlanFrom from : {PlanFrom::kCache, PlanFrom::kRankZero}) {
    std::printf("%s\n", from == PlanFrom::kCache
                            ? "A plan that a server has:"
                            : "One that rank 0 makes, once all have measured:");
    const std::vector<double> times = TimesOf(ranks, stages, rounds, answer, from);
    std::printf("%d ranks, %d stages: %.1f ms (median of %d), %.1f ms at most\n", ranks, stages,
                1e3 * Median(times), rounds, 1e3 * *std::max_element(times.begin(), times.end()));
    const double alone = Median(TimesOf(1, stages, rounds, answer, from));
    for (const int us : {0, added_us}) {
      const double time = Simulated(simulated, 1e-6 * us, stages, answer.size(), alone, from);
      std::printf("%d ranks simulated, messages as slow as here and %d us more: %.1f ms\n",
                  simulated, us, 1e3 * time);
    }
  }
  return 0;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) { return stowage::Main(argc, argv); }
