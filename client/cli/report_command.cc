#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/comparison.h"
#include "client/cli/delivery.h"
#include "client/cli/drawn_answer.h"
#include "client/cli/exit_code.h"
#include "client/cli/files.h"
#include "client/cli/frontier_question.h"
#include "client/cli/plan_flags.h"
#include "client/cli/question.h"
#include "client/cli/say.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/text.h"
#include "solvers/viz/pictures.h"
#include "solvers/viz/report.h"

ABSL_FLAG(std::string, compare_budget, "", "budget of a second plan on the same time axis");
ABSL_FLAG(std::string, compare_solver, "", "solver of a second plan on the same time axis");
ABSL_FLAG(std::string, svg, "", "file for the step as a static figure, too; empty: none");
ABSL_FLAG(std::string, graph_picture, "",
          "file for a picture of the plan's graph, too: DOT if it ends in .dot, else SVG");
ABSL_FLAG(bool, frontier, true,
          "show the solver's frontier, the bound and what other strategies have; takes as many "
          "searches");

namespace stowage {
namespace {

constexpr int kCurvePoints = 200;
constexpr int kBoundPoints = 24;

// The second plan's question; nothing without one.
struct Second {
  Question question;
  Budget budget;
};

absl::StatusOr<std::optional<Second>> SecondFromFlags(const Question& question,
                                                      const Budget& budget) {
  const std::string other = absl::GetFlag(FLAGS_compare_budget);
  const std::string solver = absl::GetFlag(FLAGS_compare_solver);
  if (other.empty() && solver.empty()) return std::nullopt;
  Second second{question, budget};
  if (!solver.empty()) second.question.key.solver = solver;
  if (other.empty()) return second;
  const absl::StatusOr<Budget> parsed = ParseBudget(other);
  if (!parsed.ok()) return parsed.status();
  second.budget = *parsed;
  return second;
}

// Asks for everything that a report shows, and tells of what it could not get.
class ReportMaker {
 public:
  ReportMaker(PlanConnection* connection, const Question& question)
      : connection_(connection), question_(question), instance_(question.instance()) {}

  // The plan, whatever its status; the report has it if it was found.
  absl::StatusOr<Plan> AddPlan(const Question& question, const Budget& budget,
                               std::optional<MeasuredStep> measured) {
    absl::StatusOr<DrawnAnswer> answer =
        AskAndDraw(connection_, question, budget, std::move(measured));
    if (!answer.ok()) return answer.status();
    if (answer->drawn) report_.plans.push_back(*std::move(answer->drawn));
    return answer->plan;
  }

  // A picture is worth having without these: what fails is said and left out.
  void AddFrontier(const Budget& budget) {
    AddCurve();
    for (const std::string& strategy : KnownStrategies(instance_)) {
      if (!strategy.empty() && strategy != "store_all") AddStrategy(strategy, budget);
    }
  }

  const Report& report() const { return report_; }

 private:
  void AddCurve() {
    const absl::StatusOr<FrontierReply> frontier =
        AskForFrontier(connection_, question_, kCurvePoints);
    if (!frontier.ok()) {
      Say(absl::StrCat("no frontier: ", frontier.status().message()));
      return;
    }
    ReportCurve curve{frontier->solver, {}};
    for (const FrontierReply::Point& point : frontier->points) {
      curve.points.push_back({point.peak, point.makespan});
    }
    if (curve.points.empty()) return;
    const Bytes least = curve.points.front().memory;
    const Bytes most = report_.plans.front().plan.bounds.store_all_peak;
    for (int k = 0; k <= kBoundPoints && least <= most; ++k) {
      const Bytes at(least.value() + (most - least).value() / kBoundPoints * k);
      report_.bound.push_back({at, MakespanLowerBound(instance_, at)});
    }
    report_.curves.push_back(std::move(curve));
  }

  void AddStrategy(const std::string& strategy, const Budget& budget) {
    Question question = question_;
    question.key.solver = strategy;
    const absl::StatusOr<PlanReply> reply = AskForPlan(connection_, question, budget, strategy);
    if (!reply.ok()) {
      Say(absl::StrCat("without ", strategy, ": ", reply.status().message()));
    } else if (reply->plan.status == PlanStatus::kFound) {
      const Simulation& prediction = reply->plan.prediction;
      report_.others.push_back({strategy, {prediction.peak, prediction.makespan}});
    }
  }

  PlanConnection* const connection_;
  const Question& question_;
  const Instance instance_;
  Report report_;
};

absl::Status WriteGraph(const Problem& problem, const DrawnPlan& plan) {
  const std::string path = absl::GetFlag(FLAGS_graph_picture);
  if (path.empty()) return absl::OkStatus();
  const Graph* graph = std::get_if<Graph>(&problem);
  if (graph == nullptr) return FieldError("--graph_picture", path, "needs the profile of a graph");
  const auto form = absl::EndsWith(path, ".dot") ? GraphPictureForm::kDot : GraphPictureForm::kSvg;
  const absl::StatusOr<std::string> picture = GraphPicture(*graph, plan, form);
  return picture.ok() ? DeliverBeside(path, *picture) : picture.status();
}

absl::Status WriteReport(const Problem& problem, const Report& report) {
  const absl::StatusOr<std::string> page = HtmlReport(problem, report);
  if (!page.ok()) return page.status();
  absl::Status written = WriteGraph(problem, report.plans.front());
  if (written.ok())
    written = DeliverBeside(absl::GetFlag(FLAGS_svg), StepSvg(report.plans.front()));
  if (!written.ok()) return written;
  std::string about;
  for (const DrawnPlan& plan : report.plans) about += PlanText(plan.plan);
  return Deliver(*page, about);
}

// Makes the plans and the report; the status of the first plan that was not found, if one was not.
absl::StatusOr<PlanStatus> MakeReport(const Question& question) {
  for (const std::string& path :
       {absl::GetFlag(FLAGS_out), absl::GetFlag(FLAGS_svg), absl::GetFlag(FLAGS_graph_picture)}) {
    const absl::Status writable = CheckWritable(path);
    if (!writable.ok()) return writable;
  }
  const absl::StatusOr<Budget> budget = BudgetFromFlag();
  if (!budget.ok()) return budget.status();
  absl::StatusOr<std::optional<MeasuredStep>> measured = MeasuredFromFlag();
  if (!measured.ok()) return measured.status();
  const auto second = SecondFromFlags(question, *budget);
  if (!second.ok()) return second.status();
  const auto connection = ConnectionFromFlags();
  if (!connection.ok()) return connection.status();
  ReportMaker maker(connection->get(), question);
  absl::StatusOr<Plan> plan = maker.AddPlan(question, *budget, *std::move(measured));
  if (plan.ok() && plan->status == PlanStatus::kFound && second->has_value()) {
    plan = maker.AddPlan((*second)->question, (*second)->budget, std::nullopt);
  }
  if (!plan.ok()) return plan.status();
  if (plan->status != PlanStatus::kFound) {
    std::cerr << PlanText(*plan);
    return plan->status;
  }
  if (absl::GetFlag(FLAGS_frontier)) maker.AddFrontier(*budget);
  const absl::Status written = WriteReport(question.profile.problem, maker.report());
  if (!written.ok()) return written;
  return PlanStatus::kFound;
}

int RunReport() {
  const absl::StatusOr<Question> question = QuestionFromFlags();
  if (!question.ok()) return Fail(question.status());
  const absl::StatusOr<PlanStatus> status = MakeReport(*question);
  return status.ok() ? ExitCodeOf(*status) : Fail(status.status());
}

}  // namespace

Command ReportCommand() {
  return {"report",
          "draw a plan, or two on one time axis, as one page of HTML",
          WithPictureFlags({"profile", "budget", "solver", "compare_budget", "compare_solver",
                            "measured", "frontier", "graph_picture", "svg", "out"}),
          RunReport,
          {"report --profile=p.json --budget=80% --out=report.html",
           "report --profile=p.json --budget=80% --compare_budget=90% --svg=step.svg "
           "--out=report.html"}};
}

}  // namespace stowage
