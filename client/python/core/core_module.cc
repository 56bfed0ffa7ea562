// stowage._core: the planning library for Python. What its classes and functions mean to users is said in
// client/python/stowage: here they are bound.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/python/core/explanation_text.h"
#include "client/python/core/plan_fields.h"
#include "client/python/core/problem_fields.h"
#include "client/python/core/solving.h"
#include "client/python/core/status_error.h"
#include "solvers/base/version.h"
#include "solvers/model/canonical.h"
#include "solvers/model/field_error.h"
#include "solvers/pipeline/pipeline.h"
#include "solvers/planner.h"
#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/lower_bound.h"
#include "solvers/schedule/text.h"
#include "solvers/viz/report.h"

namespace stowage {
namespace py = pybind11;
namespace {

// A profile, and the instance of it that all its plans share.
struct PyProfile {
  Profile profile;
  Instance instance;

  explicit PyProfile(Profile profile_in) : profile(std::move(profile_in)), instance(profile) {}

  Instance InstanceFor(bool recompute_only) const {
    return recompute_only ? instance.WithLink(std::nullopt) : instance;
  }
  Simulation StoreAll() const { return ValueOrThrow(instance.store_all()); }
};

struct PyPlan {
  Instance instance;
  Plan plan;
};

struct PyFrontier {
  Instance instance;
  Frontier frontier;
};

// A whole number of bytes, or the text of a budget.
using BudgetArgument = std::variant<int64_t, std::string>;

Budget BudgetOf(const BudgetArgument& argument) {
  if (const auto* bytes = std::get_if<int64_t>(&argument)) return Bytes(*bytes);
  return ValueOrThrow(ParseBudget(std::get<std::string>(argument)));
}

std::shared_ptr<PyPlan> PlanWithin(const PyProfile& profile, const BudgetArgument& budget,
                                   const SolveArguments& arguments) {
  const Instance instance = profile.InstanceFor(arguments.recompute_only);
  const Budget parsed = BudgetOf(budget);
  Plan plan = Solving(arguments).Run(
      [&](const PlanOptions& options) { return MakePlan(instance, parsed, options); });
  return std::make_shared<PyPlan>(PyPlan{instance, std::move(plan)});
}

std::shared_ptr<PyFrontier> FrontierOf(const PyProfile& profile, const SolveArguments& arguments) {
  const Instance instance = profile.InstanceFor(arguments.recompute_only);
  Frontier frontier = Solving(arguments).Run(
      [&](const PlanOptions& options) { return MakeFrontier(instance, options); });
  return std::make_shared<PyFrontier>(PyFrontier{instance, std::move(frontier)});
}

int64_t BudgetBytes(const PyProfile& profile, const BudgetArgument& budget,
                    const SolveArguments& arguments) {
  const Instance instance = profile.InstanceFor(arguments.recompute_only);
  const Budget parsed = BudgetOf(budget);
  return Solving(arguments)
      .Run([&](const PlanOptions& options) { return ResolveBudget(instance, parsed, options); })
      .value();
}

std::shared_ptr<PyPlan> Validated(const Instance& instance, Plan plan) {
  ThrowUnlessOk(ValidatePlan(instance, &plan));
  StrengthenBound(instance, &plan);
  return std::make_shared<PyPlan>(PyPlan{instance, std::move(plan)});
}

std::shared_ptr<PyPlan> PlanAt(const PyFrontier& frontier, int64_t budget) {
  Plan plan = frontier.frontier.PlanAt(Bytes(budget));
  plan.provenance.solver_version = kSolverVersion;
  plan.stage_vertices = StepVertices(frontier.instance.problem());
  return Validated(frontier.instance, std::move(plan));
}

// What the user's own schedule takes, as a plan of its peak.
std::shared_ptr<PyPlan> PlanOfSchedule(const PyProfile& profile, const py::sequence& instructions) {
  Plan plan;
  plan.schedule = ScheduleFromTuples(instructions);
  const Simulation run = ValueOrThrow(Evaluator(profile.instance).Run(plan.schedule));
  plan.status = PlanStatus::kFound;
  plan.budget = run.peak;
  plan.bounds.schedule_class = "this schedule";
  plan.provenance = {"given", kSolverVersion, Nanos(0), 0};
  plan.explanation = "a schedule of the caller's own";
  plan.stage_vertices = StepVertices(profile.profile.problem);
  return Validated(profile.instance, std::move(plan));
}

py::dict StageDict(const PipelineStagePlan& stage) {
  py::dict fields;
  fields["first_layer"] = stage.first_layer;
  fields["last_layer"] = stage.last_layer;
  fields["forward_time_ns"] = stage.costs.forward_time.value();
  fields["backward_time_ns"] = stage.costs.backward_time.value();
  fields["stash_bytes"] = stage.costs.stash.value();
  fields["instructions"] = TuplesOf(stage.schedule);
  fields["forward_instructions"] = stage.forward_instructions;
  return fields;
}

py::dict PipelineOf(const PyProfile& profile, int devices, int chunks, int microbatches,
                    int64_t transfer_time_ns, const std::vector<int64_t>& budgets,
                    const std::vector<int>& last_layers, const SolveArguments& arguments) {
  const auto* const chain = std::get_if<Chain>(&profile.profile.problem);
  if (chain == nullptr) {
    Throw(FieldError("profile", ToString(profile.instance.kind()), "must be of a chain"));
  }
  PipelineRequest request;
  request.shape = {devices, chunks, microbatches, Nanos(transfer_time_ns)};
  for (const int64_t budget : budgets) request.budgets.emplace_back(budget);
  request.last_layers = last_layers;
  const PipelinePlan plan = Solving(arguments).Run(
      [&](const PlanOptions& options) { return PlanPipeline(*chain, request, options.solve); });
  py::dict fields;
  fields["status"] = ToString(plan.status);
  fields["makespan_ns"] = plan.makespan.value();
  fields["lower_bound_ns"] = plan.lower_bound.value();
  fields["proven_optimal"] = plan.proven_optimal;
  fields["schedule_class"] = plan.schedule_class;
  fields["short_device"] = plan.short_device;
  fields["least_bytes"] = plan.least_budget.value();
  fields["least_equal_bytes"] = plan.least_equal_budget.value();
  py::list peaks, stages;
  for (const Bytes peak : plan.peaks) peaks.append(peak.value());
  for (const PipelineStagePlan& stage : plan.stages) stages.append(StageDict(stage));
  fields["peak_bytes"] = peaks;
  fields["stages"] = stages;
  return fields;
}

std::string ReportPage(const PyPlan& plan, const std::string& label,
                       const std::shared_ptr<PyFrontier>& frontier) {
  Report report;
  report.plans.push_back(ValueOrThrow(DrawPlan(plan.instance, label, plan.plan)));
  if (frontier != nullptr) {
    ReportCurve curve{frontier->frontier.info().solver, {}};
    for (const Frontier::Point& point : frontier->frontier.points()) {
      curve.points.push_back({point.peak, point.makespan});
    }
    report.curves.push_back(std::move(curve));
  }
  return ValueOrThrow(HtmlReport(plan.instance.problem(), report));
}

std::vector<std::pair<int64_t, int64_t>> PointsOf(const PyFrontier& frontier) {
  std::vector<std::pair<int64_t, int64_t>> points;
  for (const Frontier::Point& point : frontier.frontier.points()) {
    points.emplace_back(point.peak.value(), point.makespan.value());
  }
  return points;
}

py::list SolversThereAre() {
  py::list solvers;
  for (const Solver* solver : AllSolvers()) {
    solvers.append(py::make_tuple(solver->info().name, solver->info().description));
  }
  return solvers;
}

void BindArguments(py::module_* module) {
  py::class_<StopToken, std::shared_ptr<StopToken>>(*module, "Stop")
      .def(py::init(&MakeStop), py::arg("deadline_s") = py::none())
      .def("request", &StopToken::RequestStop);
  py::class_<SolveArguments>(*module, "SolveArguments")
      .def(py::init([](std::string solver, int64_t slots, int threads,
                       std::shared_ptr<StopToken> stop, std::optional<int64_t> table_limit_bytes,
                       bool recompute_only) {
             return SolveArguments{std::move(solver), slots,         threads, std::move(stop),
                                   table_limit_bytes, recompute_only};
           }),
           py::kw_only(), py::arg("solver"), py::arg("slots"), py::arg("threads"),
           py::arg("stop").none(false), py::arg("table_limit_bytes"), py::arg("recompute_only"));
}

void BindProfile(py::module_* module) {
  py::class_<PyProfile, std::shared_ptr<PyProfile>>(*module, "Profile")
      .def_static(
          "from_dict",
          [](const py::dict& dict) { return std::make_shared<PyProfile>(ProfileFromDict(dict)); })
      .def("to_dict", [](const PyProfile& self) { return DictOf(self.profile); })
      .def_property_readonly("name", [](const PyProfile& self) { return self.profile.name; })
      .def_property_readonly("kind",
                             [](const PyProfile& self) { return ToString(self.instance.kind()); })
      .def_property_readonly(
          "labels", [](const PyProfile& self) { return StageLabels(self.profile.problem); })
      .def_property_readonly(
          "ideal_time_ns", [](const PyProfile& self) { return self.instance.ideal_time().value(); })
      .def_property_readonly("store_all_peak_bytes",
                             [](const PyProfile& self) { return self.StoreAll().peak.value(); })
      .def("key",
           [](const PyProfile& self, const std::string& solver, int64_t slots, bool recompute_only,
              const std::string& tenant) {
             KeyOptions options;
             options.tenant = tenant;
             options.solver = solver;
             options.slots = slots;
             options.recompute_only = recompute_only;
             return MakePlanKey(self.profile, options).digest.ToHex();
           })
      .def("plan", PlanWithin)
      .def("frontier", FrontierOf)
      .def("pipeline", PipelineOf)
      .def("budget_bytes", BudgetBytes)
      .def(
          "lower_bound_ns",
          [](const PyProfile& self, int64_t budget) {
            return StrongestMakespanLowerBound(self.instance, Bytes(budget)).value();
          },
          py::call_guard<py::gil_scoped_release>())
      .def("plan_of_schedule", PlanOfSchedule)
      .def("plan_from_dict", [](const PyProfile& self, const py::dict& dict, bool recompute_only) {
        return Validated(self.InstanceFor(recompute_only), PlanFromDict(dict));
      });
}

using PlanClass = py::class_<PyPlan, std::shared_ptr<PyPlan>>;

void BindFigures(PlanClass* plan) {
  const auto figure = [plan](const char* name, auto of) {
    plan->def_property_readonly(name, [of](const PyPlan& self) { return of(self.plan); });
  };
  figure("status", [](const Plan& p) { return std::string(ToString(p.status)); });
  figure("budget_bytes", [](const Plan& p) { return p.budget.value(); });
  figure("peak_bytes", [](const Plan& p) { return p.prediction.peak.value(); });
  figure("makespan_ns", [](const Plan& p) { return p.prediction.makespan.value(); });
  figure("recompute_time_ns", [](const Plan& p) { return p.prediction.recompute_time.value(); });
  figure("recomputed_forwards", [](const Plan& p) { return p.prediction.recomputed_forwards; });
  figure("offloaded_bytes", [](const Plan& p) { return p.prediction.offloaded.value(); });
  figure("store_all_peak_bytes", [](const Plan& p) { return p.bounds.store_all_peak.value(); });
  figure("store_all_makespan_ns",
         [](const Plan& p) { return p.bounds.store_all_makespan.value(); });
  figure("lower_bound_ns", [](const Plan& p) { return p.bounds.lower_bound.value(); });
  figure("gap", [](const Plan& p) { return p.gap(); });
  figure("proven_optimal", [](const Plan& p) { return p.bounds.proven_optimal; });
  figure("schedule_class", [](const Plan& p) { return p.bounds.schedule_class; });
  figure("least_bytes", [](const Plan& p) { return p.bounds.least_budget.value(); });
  figure("solver", [](const Plan& p) { return p.provenance.solver; });
  figure("solve_time_ns", [](const Plan& p) { return p.provenance.solve_time.value(); });
  figure("revision", [](const Plan& p) { return p.revision; });
  figure("search_complete", [](const Plan& p) { return p.search_complete; });
  figure("explanation", [](const Plan& p) { return p.explanation; });
  figure("digest", [](const Plan& p) { return ScheduleDigest(p.schedule).ToHex(); });
}

void BindPlan(py::module_* module) {
  PlanClass plan(*module, "Plan");
  BindFigures(&plan);
  plan.def("to_dict", [](const PyPlan& self) { return DictOf(self.plan); })
      .def("schedule", [](const PyPlan& self) { return TuplesOf(self.plan.schedule); })
      .def("schedule_text", [](const PyPlan& self) { return ScheduleText(self.plan.schedule); })
      .def("summary", [](const PyPlan& self) { return PlanText(self.plan); })
      .def("explain",
           [](const PyPlan& self) {
             return ValueOrThrow(ExplanationText(self.instance, self.plan));
           })
      .def("report", ReportPage, py::arg("label") = "plan", py::arg("frontier") = py::none())
      .def("__repr__", [](const PyPlan& self) {
        return absl::StrCat("<stowage.Plan ", ToString(self.plan.status), ": ",
                            ToString(self.plan.prediction.peak), " of ", ToString(self.plan.budget),
                            ">");
      });
}

void BindFrontier(py::module_* module) {
  py::class_<PyFrontier, std::shared_ptr<PyFrontier>>(*module, "Frontier")
      .def_property_readonly("points", PointsOf)
      .def_property_readonly(
          "least_bytes",
          [](const PyFrontier& self) { return self.frontier.info().least_budget.value(); })
      .def_property_readonly("exact",
                             [](const PyFrontier& self) { return self.frontier.info().exact; })
      .def_property_readonly(
          "search_complete",
          [](const PyFrontier& self) { return self.frontier.info().search_complete; })
      .def_property_readonly("solver",
                             [](const PyFrontier& self) { return self.frontier.info().solver; })
      .def("plan_at", PlanAt);
}

}  // namespace
}  // namespace stowage

PYBIND11_MODULE(_core, module) {
  stowage::RegisterStatusErrors();
  module.attr("VERSION") = stowage::kVersion;
  module.attr("KEY_ENCODING_VERSION") = stowage::kEncodingVersion;
  stowage::BindArguments(&module);
  stowage::BindProfile(&module);
  stowage::BindFrontier(&module);
  stowage::BindPlan(&module);
  module.def("solvers", stowage::SolversThereAre);
}
