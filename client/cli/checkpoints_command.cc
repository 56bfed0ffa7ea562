// stowage checkpoints: which tensors to keep so that they and the largest segment between them take least.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/checkpoint_finding.h"
#include "client/cli/commands.h"
#include "client/cli/delivery.h"
#include "client/cli/exit_code.h"
#include "client/cli/files.h"
#include "client/cli/plan_flags.h"
#include "client/cli/profile_file.h"
#include "client/cli/progress_line.h"
#include "client/cli/ticking_line.h"
#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/division_tree.h"
#include "solvers/model/field_error.h"
#include "solvers/viz/division_drawing.h"

ABSL_FLAG(std::string, rule, "",
          "where a segment may lie: two_end_points (it reads one checkpoint and is read by one, "
          "Feng & Huang 2018) or several_end_points (any that can run one after the other); empty: "
          "that of --solver, and two_end_points without one");
ABSL_FLAG(bool, tree, false, "svg, dot: draw the division tree of the graph, not the graph");

namespace stowage {
namespace {

constexpr const char* kCheckpointFormats[] = {"text", "json", "csv", "svg", "dot"};
constexpr SegmentRule kSegmentRules[] = {SegmentRule::kTwoEndPoints,
                                         SegmentRule::kSeveralEndPoints};

std::vector<std::string> CheckpointSolverNames() {
  std::vector<std::string> names;
  for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
    names.push_back(solver->info().name);
  }
  return names;
}

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  for (const SegmentRule rule : kSegmentRules) names.emplace_back(ToString(rule));
  return names;
}

absl::Status IsOneOf(const char* flag, const std::string& value,
                     const std::vector<std::string>& words) {
  if (std::find(words.begin(), words.end(), value) != words.end()) return absl::OkStatus();
  return FieldError(flag, absl::StrCat("\"", value, "\""),
                    absl::StrCat("must be ", absl::StrJoin(words, " or ")));
}

// The solver that is named, or the one that is best under the rule.
absl::StatusOr<const CheckpointSolver*> SolverFromFlags() {
  const std::string name = absl::GetFlag(FLAGS_solver), rule = absl::GetFlag(FLAGS_rule);
  if (!rule.empty()) {
    const absl::Status known = IsOneOf("--rule", rule, RuleNames());
    if (!known.ok()) return known;
  }
  if (name.empty()) {
    const bool several = rule == ToString(SegmentRule::kSeveralEndPoints);
    return several ? &AcyclicQuotientSolver() : &DivisionTreeSolver();
  }
  for (const CheckpointSolver* solver : AllCheckpointSolvers()) {
    if (solver->info().name != name) continue;
    const char* const own = ToString(solver->rule());
    if (rule.empty() || rule == own) return solver;
    return FieldError("--rule", rule, absl::StrCat("must be ", own, " with --solver=", name));
  }
  return IsOneOf("--solver", name, CheckpointSolverNames());
}

absl::StatusOr<std::string> CheckpointFormat() {
  const std::string format = absl::GetFlag(FLAGS_format);
  const absl::Status known =
      IsOneOf("--format", format, {std::begin(kCheckpointFormats), std::end(kCheckpointFormats)});
  if (!known.ok()) return known;
  if (absl::GetFlag(FLAGS_tree) && format != "svg" && format != "dot") {
    return FieldError("--tree", "true", "needs --format=svg or --format=dot");
  }
  return format;
}

absl::StatusOr<CheckpointFinding> FindFromFlags(const CheckpointSolver& solver) {
  const absl::StatusOr<Profile> profile = ProfileFromFlag();
  if (!profile.ok()) return profile.status();
  const absl::StatusOr<CallOptions> call = CallOptionsFromFlags();
  if (!call.ok()) return call.status();
  const StopToken stop(call->deadline);
  TickingLine line(TerminalOrNull(), "finding checkpoints", call->deadline);
  SolveOptions options;
  options.stop = &stop;
  options.progress = [&line](double share) { line.Report(share); };
  absl::StatusOr<CheckpointFinding> finding = FindCheckpoints(*profile, solver, options);
  if (absl::IsFailedPrecondition(finding.status())) {  // not for such graphs
    return FieldError("--solver", solver.info().name, std::string(finding.status().message()));
  }
  if (absl::IsInvalidArgument(finding.status())) {
    return ErrorIn(absl::GetFlag(FLAGS_profile), finding.status());
  }
  return finding;
}

absl::StatusOr<std::string> CheckpointPicture(const CheckpointFinding& finding, bool svg) {
  const CheckpointGraph& graph = finding.problem.graph;
  const GraphDrawing drawing = DrawingOf(finding);
  if (!absl::GetFlag(FLAGS_tree)) return svg ? DrawSvg(graph, drawing) : DrawDot(graph, drawing);
  StopPoll poll(nullptr);
  const absl::StatusOr<DivisionTree> tree = DivisionTree::Build(graph, &poll);
  if (!tree.ok()) return tree.status();
  return svg ? DrawDivisionSvg(graph, *tree, drawing) : DrawDivisionDot(graph, *tree, drawing);
}

absl::StatusOr<std::string> ContentOf(const std::string& format, const CheckpointFinding& finding) {
  if (format == "text") return ToText(finding);
  if (format == "json") return ToJson(finding);
  if (format == "csv") return VerticesOf(finding).Csv();
  return CheckpointPicture(finding, format == "svg");
}

int RunCheckpoints() {
  const absl::StatusOr<std::string> format = CheckpointFormat();
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<const CheckpointSolver*> solver = SolverFromFlags();
  if (!solver.ok()) return Fail(solver.status());
  const absl::Status writable = CheckWritable(absl::GetFlag(FLAGS_out));
  if (!writable.ok()) return Fail(writable);
  const absl::StatusOr<CheckpointFinding> finding = FindFromFlags(**solver);
  if (!finding.ok()) return Fail(finding.status());
  const absl::StatusOr<std::string> content = ContentOf(*format, *finding);
  if (!content.ok()) return Fail(content.status());
  const absl::Status delivered = Deliver(*content, *format == "text" ? "" : SummaryText(*finding));
  return delivered.ok() ? kExitOk : Fail(delivered);
}

}  // namespace

Command CheckpointsCommand() {
  Command command{"checkpoints",
                  "which tensors to keep so that they and the largest segment between take least",
                  {"profile", "solver", "rule", "format", "tree", "timeout", "out"},
                  RunCheckpoints,
                  {"checkpoints --profile=p.json",
                   "checkpoints --profile=p.json --rule=several_end_points --format=json",
                   "checkpoints --profile=p.json --format=svg --out=checkpoints.svg"}};
  command.words = {{"solver", CheckpointSolverNames()},
                   {"rule", RuleNames()},
                   {"format", {std::begin(kCheckpointFormats), std::end(kCheckpointFormats)}}};
  return command;
}

}  // namespace stowage
