// Writes reports of several kinds for people to look at and for report_page_test.py to open.
//
//   report_pages FOLDER
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/viz/chrome_trace.h"
#include "solvers/viz/pictures.h"
#include "solvers/viz/report.h"
#include "solvers/zoo/network_graph.h"
#include "solvers/zoo/networks.h"
#include "tests/solvers/viz/report_sample.h"

namespace stowage {
namespace {

template <class T>
T OrExit(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::fprintf(stderr, "report_pages: %s\n", value.status().ToString().c_str());
  std::exit(1);
}

void Write(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
  std::printf("%s: %zu bytes\n", path.c_str(), content.size());
}

Plan PlanWith(const Instance& instance, const std::string& solver, Bytes budget) {
  PlanOptions options;
  options.solver = solver;
  options.solve.slots = 500;
  return OrExit(MakePlan(instance, budget, options));
}

// Every instruction a little longer than planned, none quite alike, and memory with some of the workspace
// still held.
MeasuredStep LikeMeasured(const DrawnPlan& plan) {
  std::mt19937_64 rng(1);
  MeasuredStep step;
  step.schedule = ScheduleDigest(plan.plan.schedule);
  Nanos now(40000);
  for (const TimelineEvent& event : plan.step.events) {
    const int64_t planned = (event.left - event.reached).value();
    const Nanos end = now + Nanos(planned + planned * static_cast<int64_t>(rng() % 13) / 100);
    step.instructions.push_back({now, end, event.running.total(), event.held.total()});
    now = end;
  }
  step.peak = plan.step.simulation.peak;
  step.step_time = now + Nanos(150000);
  return step;
}

// At budgets from the least to that of storing everything.
std::vector<TradeOff> BoundCurve(const Instance& instance, Bytes least, Bytes most) {
  constexpr int kPoints = 24;
  std::vector<TradeOff> bound;
  for (int k = 0; k <= kPoints; ++k) {
    const Bytes budget(least.value() + (most - least).value() / kPoints * k);
    bound.push_back({budget, MakespanLowerBound(instance, budget)});
  }
  return bound;
}

class Pages {
 public:
  Pages(std::string folder, Instance instance)
      : folder_(std::move(folder)), instance_(std::move(instance)) {}

  DrawnPlan Draw(const std::string& solver, Bytes budget, bool measured) const {
    Plan plan = PlanWith(instance_, solver, budget);
    DrawnPlan drawn = OrExit(DrawPlan(instance_, solver, plan));
    if (!measured) return drawn;
    return OrExit(DrawPlan(instance_, solver, plan, LikeMeasured(drawn)));
  }

  void AddFrontier(const std::string& solver, const std::vector<std::string>& others, Bytes budget,
                   Report* report) const {
    PlanOptions options;
    options.solver = solver;
    options.solve.slots = 500;
    const Frontier frontier = OrExit(MakeFrontier(instance_, options));
    ReportCurve curve{solver, {}};
    for (const Frontier::Point& point : frontier.points()) {
      curve.points.push_back({point.peak, point.makespan});
    }
    report->curves.push_back(curve);
    for (const std::string& other : others) {
      const Plan plan = PlanWith(instance_, other, budget);
      if (plan.status != PlanStatus::kFound) continue;
      report->others.push_back({other, {plan.prediction.peak, plan.prediction.makespan}});
    }
    report->bound = BoundCurve(instance_, curve.points.front().memory, curve.points.back().memory);
  }

  void Write(const std::string& name, const Report& report) const {
    stowage::Write(folder_ + "/" + name + ".html", OrExit(HtmlReport(instance_.problem(), report)));
    stowage::Write(folder_ + "/" + name + ".svg", StepSvg(report.plans.front(), {name}));
    stowage::Write(folder_ + "/" + name + ".json",
                   ChromeTrace(instance_.problem(), report.plans.front()));
  }

 private:
  const std::string folder_;
  const Instance instance_;
};

Bytes Share(const Problem& problem, double share) {
  return ShareOf({share}, OrExit(Instance(problem).store_all()).peak);
}

void WriteSmall(const std::string& folder) {
  Report report;
  report.plans.push_back(testing::SampleDrawn(true));
  Pages(folder, testing::SampleProblem()).Write("small", report);
}

void WriteChain(const std::string& folder) {
  const Chain chain = OrExit(NetworkChain({"resnet50", 224, 64}, ModelledV100()));
  const Bytes budget = Share(chain, 0.5);
  const Pages alone(folder, {chain, std::nullopt});
  Report report;
  report.plans.push_back(alone.Draw("optimal_persistent", budget, true));
  alone.AddFrontier("optimal_persistent",
                    {"checkpoint_sequential", "chen_sqrt", "chen_greedy", "revolve"}, budget,
                    &report);
  alone.Write("chain", report);

  const CopyCost cost{int64_t{12000000000}, Nanos(10000)};
  const Pages linked(folder, {chain, TransferModel{cost, cost, true, Bytes(int64_t{64} << 30)}});
  Report compared;
  compared.plans.push_back(linked.Draw("offload_greedy", budget, false));
  compared.plans.push_back(linked.Draw("optimal_persistent", budget, false));
  linked.AddFrontier("optimal_persistent", {"offload_vdnn", "offload_tflms", "chen_sqrt"}, budget,
                     &compared);
  linked.Write("compare", compared);
}

// Every other backward communicates, as those of data-parallel training do.
void WriteCommunication(const std::string& folder) {
  const Chain plain = OrExit(NetworkChain({"resnet18", 224, 32}, ModelledV100()));
  ChainSpec spec = plain.spec();
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.schedule = StoreAllSchedule(plain);
  for (size_t s = 0; s < spec.stages.size(); s += 2) spec.stages[s].collective = true;
  for (Instruction& i : plan.schedule) {
    const bool communicates =
        i.op == Op::kBackward && i.stage % 2 == 1 && i.stage <= plain.length();
    if (communicates) i.stream = Stream::kCommunication;
  }
  const Instance instance{OrExit(Chain::Create(spec)), std::nullopt};
  plan.budget = OrExit(Evaluator(instance).Run(plan.schedule)).peak;
  const absl::Status status = ValidatePlan(instance, &plan);
  if (!status.ok()) OrExit<int>(status);
  Report report;
  report.plans.push_back(OrExit(DrawPlan(instance, "communication", plan)));
  Pages(folder, instance).Write("communication", report);
}

void WriteGraph(const std::string& folder) {
  DecoderOptions decoder;
  decoder.layers = 60;
  decoder.width = 1024;
  decoder.heads = 16;
  decoder.length = 512;
  decoder.vocabulary = 8000;
  const Network network = OrExit(MakeDecoder(decoder));
  const Graph graph = OrExit(GraphOf(network, ModelledV100()));
  const Pages pages(folder, {graph, std::nullopt});
  Report report;
  report.plans.push_back(pages.Draw("optimal_persistent", Share(graph, 0.6), true));
  pages.AddFrontier("optimal_persistent", {"chen_sqrt", "revolve"}, Share(graph, 0.6), &report);
  pages.Write("graph", report);
  std::printf("%d vertices\n", graph.size());
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: report_pages FOLDER\n");
    return 2;
  }
  stowage::WriteSmall(argv[1]);
  stowage::WriteChain(argv[1]);
  stowage::WriteCommunication(argv[1]);
  stowage::WriteGraph(argv[1]);
  return 0;
}
