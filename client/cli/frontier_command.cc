#include <cstdint>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/cells.h"
#include "client/cli/commands.h"
#include "client/cli/curve_sketch.h"
#include "client/cli/exit_code.h"
#include "client/cli/frontier_question.h"
#include "client/cli/json_text.h"
#include "client/cli/listing.h"
#include "client/cli/plan_flags.h"
#include "client/cli/progress_line.h"
#include "client/cli/question.h"
#include "solvers/model/field_error.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/simulation.h"

ABSL_FLAG(int, points, 20, "points to show at most, those that gain most; 0 shows all there are");

namespace stowage {
namespace {

constexpr int kSketchWidth = 64, kSketchHeight = 12;

// What there is to show: the points, and what they are held against.
struct FrontierAnswer {
  std::string name;
  Simulation store_all;
  FrontierReply frontier;

  double share(Bytes bytes) const { return Fraction(bytes, store_all.peak); }
  double overhead(Nanos makespan) const { return Overhead(makespan, store_all.makespan); }
};

absl::StatusOr<FrontierAnswer> AskForFrontier() {
  const int points = absl::GetFlag(FLAGS_points);
  if (points < 0 || points > static_cast<int>(kMostPoints)) {
    return FieldError("--points", points, absl::StrCat("must be in [0, ", kMostPoints, "]"));
  }
  const absl::StatusOr<Question> question = QuestionFromFlags();
  if (!question.ok()) return question.status();
  const auto connection = ConnectionFromFlags();
  if (!connection.ok()) return connection.status();
  const absl::StatusOr<Simulation> plain = Instance(question->profile.problem).store_all();
  if (!plain.ok()) return plain.status();
  absl::StatusOr<FrontierReply> frontier = AskForFrontier(connection->get(), *question, points);
  if (!frontier.ok()) return frontier.status();
  return FrontierAnswer{question->profile.name, *plain, *std::move(frontier)};
}

Listing ListingOf(const FrontierAnswer& answer) {
  Listing listing({{"budget", "MiB", "budget_bytes"},
                   {"of plain", "peak %", "share_of_store_all"},
                   {"step", "ms", "makespan_ns"},
                   {"over plain", "step %", "overhead"},
                   {"peak", "MiB", "peak_bytes"}});
  for (const FrontierReply::Point& point : answer.frontier.points) {
    const double share = answer.share(point.budget), overhead = answer.overhead(point.makespan);
    listing.AddRow({Listing::Number(Mebibytes(point.budget), point.budget.value()),
                    Listing::Number(absl::StrFormat("%.1f", 100 * share), share),
                    Listing::Number(Milliseconds(point.makespan), point.makespan.value()),
                    Listing::Number(absl::StrFormat("%.1f", 100 * overhead), overhead),
                    Listing::Number(Mebibytes(point.peak), point.peak.value())});
  }
  return listing;
}

std::string FrontierSketch(const FrontierAnswer& answer) {
  std::vector<CurvePoint> points;
  for (const FrontierReply::Point& point : answer.frontier.points) {
    points.push_back({100 * answer.share(point.budget), 100 * answer.overhead(point.makespan)});
  }
  if (points.size() < 2) return "";
  const CurveAxis x{"budget, % of plain training's peak", points.front().x, points.back().x};
  const CurveAxis y{"time over plain training, %", points.back().y, points.front().y};
  return absl::StrCat("\n", CurveSketch(points, x, y, kSketchWidth, kSketchHeight));
}

std::string FrontierText(const FrontierAnswer& answer) {
  const FrontierReply& frontier = answer.frontier;
  return absl::StrCat(
      ListingOf(answer).Table(), OutputIsTerminal() ? FrontierSketch(answer) : "", "\n",
      "plain training ", ToString(answer.store_all.makespan), " a step, peak ",
      ToString(answer.store_all.peak), ": it stores every activation\nneeds at least ",
      ToString(frontier.least_budget),
      absl::StrFormat(" (%.1f%% of that peak)", 100 * answer.share(frontier.least_budget)),
      ": below, nothing fits\nsolver         ", frontier.solver, ": at each budget ",
      frontier.exact ? "proven the fastest" : "not proven the fastest", " of ",
      frontier.schedule_class, "\n",
      frontier.search_complete
          ? ""
          : "search         cut short by --timeout: with more time there may be faster plans\n");
}

std::string FrontierJson(const FrontierAnswer& answer) {
  const FrontierReply& frontier = answer.frontier;
  return JsonObject({{"name", JsonString(answer.name)},
                     {"store_all_makespan_ns", absl::StrCat(answer.store_all.makespan.value())},
                     {"store_all_peak_bytes", absl::StrCat(answer.store_all.peak.value())},
                     {"least_budget_bytes", absl::StrCat(frontier.least_budget.value())},
                     {"solver", JsonString(frontier.solver)},
                     {"schedule_class", JsonString(frontier.schedule_class)},
                     {"exact", JsonBool(frontier.exact)},
                     {"search_complete", JsonBool(frontier.search_complete)},
                     {"key", JsonString(frontier.key.digest.ToHex())},
                     {"points", ListingOf(answer).Json()}}) +
         "\n";
}

int RunFrontier() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const absl::StatusOr<FrontierAnswer> answer = AskForFrontier();
  if (!answer.ok()) return Fail(answer.status());
  switch (*format) {
    case Format::kText:
      std::cout << FrontierText(*answer);
      break;
    case Format::kJson:
      std::cout << FrontierJson(*answer);
      break;
    case Format::kCsv:
      std::cout << ListingOf(*answer).Csv();
      break;
  }
  return answer->frontier.points.empty() ? kExitInfeasible : kExitOk;
}

}  // namespace

Command FrontierCommand() {
  return {"frontier",
          "the least time for every budget of a profile",
          WithQuestionFlags({"profile", "solver", "points"}),
          RunFrontier,
          {"frontier --profile=p.json", "frontier --profile=p.json --points=5 --format=csv"}};
}

}  // namespace stowage
