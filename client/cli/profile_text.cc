#include "client/cli/profile_text.h"

#include <cstddef>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/cells.h"
#include "client/cli/table.h"

namespace stowage {
namespace {

std::string Quartiles(const TimeSpread& spread) {
  return absl::StrCat(Milliseconds(spread.lower_quartile), " - ",
                      Milliseconds(spread.upper_quartile));
}

template <class Step>
std::vector<std::string> RowOf(const Step& step, const StageTimes& times, Bytes saved) {
  return {step.name,
          Milliseconds(times.forward.median),
          Quartiles(times.forward),
          Milliseconds(step.stopped_time()),
          Milliseconds(times.backward.median),
          Quartiles(times.backward),
          Mebibytes(step.output),
          Mebibytes(saved),
          Mebibytes(step.backward_overhead)};
}

void AddRows(const Chain& chain, const std::vector<StageTimes>& times, Table* table) {
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& stage = chain.stage(l);
    table->AddRow(RowOf(stage, times[static_cast<size_t>(l) - 1], stage.saved));
  }
}

void AddRows(const Graph& graph, const std::vector<StageTimes>& times, Table* table) {
  for (int v = 0; v < graph.size(); ++v) {
    const Vertex& vertex = graph.vertex(v);
    table->AddRow(RowOf(vertex, times[static_cast<size_t>(v)], vertex.extra_saved));
  }
}

std::string CalibrationText(const Calibration& calibration) {
  if (!calibration.applied) {
    return absl::StrCat("not held against whole steps: ", calibration.why_not, "\n");
  }
  return absl::StrFormat(
      "measured one by one they take %s together, a whole step takes %s (median of %d): all times "
      "are "
      "scaled by %.3f\nhalf of the passes then differ from the step beside them by up to %.1f%%\n",
      ToString(calibration.stages), ToString(calibration.step), calibration.steps,
      calibration.factor, 100 * calibration.residual);
}

}  // namespace

std::string ProfileText(const Profile& profile, const ProfileReport& report) {
  const bool graph = std::holds_alternative<Graph>(profile.problem);
  Table table({{graph ? "vertex" : "stage", ""},
               {"forward", "ms"},
               {"its quartiles", "ms"},
               {"to save again", "ms"},
               {"backward", "ms"},
               {"its quartiles", "ms"},
               {"output", "MiB"},
               {graph ? "extra saved" : "saved", "MiB"},
               {"backward adds", "MiB"}});
  std::visit([&](const auto& problem) { AddRows(problem, report.stages, &table); },
             profile.problem);
  return absl::StrCat(table.ToString(), report.passes, " passes; a step takes ",
                      ToString(IdealTime(profile.problem)), "\n",
                      CalibrationText(report.calibration));
}

}  // namespace stowage
