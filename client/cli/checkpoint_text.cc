#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/cells.h"
#include "client/cli/checkpoint_finding.h"
#include "client/cli/json_text.h"

namespace stowage {
namespace {

// As in PlanText.
std::string FindingLine(const char* label, const std::string& value) {
  return absl::StrFormat("  %-14s %s\n", label, value);
}

std::string Counted(size_t count, const char* one, const char* several) {
  return absl::StrCat(count, " ", count == 1 ? one : several);
}

// Which sets the rule allows, as the end of "of all sets ...".
const char* AllowedBy(SegmentRule rule) {
  switch (rule) {
    case SegmentRule::kTwoEndPoints:
      return "whose segments each read one checkpoint and are read by one (two_end_points)";
    case SegmentRule::kSeveralEndPoints:
      return "whose segments can run one after the other (several_end_points)";
  }
  return "";
}

std::string BoundText(const CheckpointFinding& finding) {
  const CheckpointAnswer& answer = finding.answer;
  const char* const allowed = AllowedBy(finding.solver->rule());
  if (answer.optimal) {
    return absl::StrCat(ToString(answer.lower_bound), ": proven the least of all sets ", allowed);
  }
  if (answer.lower_bound == Bytes(0)) return "this solver proves none";
  return absl::StrCat(ToString(answer.lower_bound), ": no set takes less of all ", allowed,
                      "; whether one takes as little is not known");
}

std::string NotCountedText(const CheckpointFinding& finding) {
  const Bytes beside = finding.problem.saved_beside;
  std::string text = "gradients, workspaces";
  if (beside == Bytes(0)) return text;
  return absl::StrCat(text, ", and ", ToString(beside), " that ",
                      finding.chain ? "stages save beside their outputs"
                                    : "ops save beside their outputs (masks, statistics)");
}

std::string SegmentsJson(const CheckpointFinding& finding) {
  std::vector<int64_t> counts(finding.segments.segment_bytes.size(), 0);
  for (const int segment : finding.segments.segment_of) {
    if (segment != Segmentation::kCheckpoint) ++counts[static_cast<size_t>(segment)];
  }
  std::vector<std::string> segments;
  for (size_t s = 0; s < counts.size(); ++s) {
    segments.push_back(
        JsonObject({{"segment", absl::StrCat(s)},
                    {"bytes", absl::StrCat(finding.segments.segment_bytes[s].value())},
                    {"vertices", absl::StrCat(counts[s])}}));
  }
  return JsonArray(segments);
}

std::string NamesJson(const CheckpointFinding& finding) {
  std::vector<std::string> names;
  for (const int v : finding.answer.set.checkpoints) {
    names.push_back(JsonString(finding.labels[static_cast<size_t>(v)]));
  }
  return JsonArray(names);
}

}  // namespace

std::string SummaryText(const CheckpointFinding& finding) {
  const CheckpointSet& set = finding.answer.set;
  const CheckpointGraph& graph = finding.problem.graph;
  const size_t vertices = static_cast<size_t>(graph.size());
  const size_t segments = finding.segments.segment_bytes.size();
  std::string text = absl::StrCat(
      finding.name.empty() ? "profile" : finding.name,
      finding.chain ? ", a chain, as the path of its stages' outputs: " : ", a graph: ",
      Counted(vertices, "tensor", "tensors"), " of ", ToString(graph.total()), "\n");
  text += FindingLine("solver", absl::StrCat(finding.solver->info().name, ": ",
                                             finding.solver->info().description));
  text += FindingLine("kept", absl::StrCat(Counted(set.checkpoints.size(), "tensor", "tensors"),
                                           ", ", ToString(set.checkpoint_bytes)));
  text += FindingLine("recomputed",
                      absl::StrCat(Counted(vertices - set.checkpoints.size(), "tensor", "tensors"),
                                   " in ", Counted(segments, "segment", "segments"),
                                   ", the largest of ", ToString(set.segment_bytes)));
  const double share = graph.total() == Bytes(0) ? 1.0 : Fraction(set.objective(), graph.total());
  text += FindingLine("needed", absl::StrCat(ToString(set.objective()),
                                             ", what is kept and the largest "
                                             "segment: ",
                                             absl::StrFormat("%.1f%%", 100 * share), " of the ",
                                             ToString(graph.total()), " of keeping every tensor"));
  text += FindingLine("lower bound", BoundText(finding));
  text += FindingLine("not counted", NotCountedText(finding));
  return text + FindingLine("solve", absl::StrCat(ToString(finding.cpu), " of CPU time"));
}

std::string ToText(const CheckpointFinding& finding) {
  Listing kept({{"kept", "", "name"}, {"", "MiB", "bytes"}});
  for (const int v : finding.answer.set.checkpoints) {
    const Bytes bytes = finding.problem.graph.bytes(v);
    kept.AddRow({Listing::Text(finding.labels[static_cast<size_t>(v)]),
                 Listing::Number(Mebibytes(bytes), bytes.value())});
  }
  return absl::StrCat(SummaryText(finding), "\n", kept.Table());
}

std::string ToJson(const CheckpointFinding& finding) {
  const CheckpointAnswer& answer = finding.answer;
  const auto count = [](Bytes bytes) { return absl::StrCat(bytes.value()); };
  const bool bounded = answer.optimal || answer.lower_bound > Bytes(0);
  return JsonObject({{"name", JsonString(finding.name)},
                     {"form", JsonString(finding.chain ? "chain" : "graph")},
                     {"solver", JsonString(finding.solver->info().name)},
                     {"rule", JsonString(ToString(finding.solver->rule()))},
                     {"store_all_bytes", count(finding.problem.graph.total())},
                     {"checkpoint_bytes", count(answer.set.checkpoint_bytes)},
                     {"largest_segment_bytes", count(answer.set.segment_bytes)},
                     {"objective_bytes", count(answer.set.objective())},
                     {"lower_bound_bytes", bounded ? count(answer.lower_bound) : "null"},
                     {"proven_optimal", JsonBool(answer.optimal)},
                     {"saved_beside_bytes", count(finding.problem.saved_beside)},
                     {"cpu_time_ns", absl::StrCat(finding.cpu.value())},
                     {"checkpoints", NamesJson(finding)},
                     {"segments", SegmentsJson(finding)},
                     {"vertices", VerticesOf(finding).Json()}}) +
         "\n";
}

Listing VerticesOf(const CheckpointFinding& finding) {
  Listing listing({{"", "", "vertex"},
                   {"tensor", "", "name"},
                   {"", "", "id"},
                   {"", "MiB", "bytes"},
                   {"kept", "", "checkpoint"},
                   {"", "", "must_keep"},
                   {"segment", "", "segment"}});
  const CheckpointGraph& graph = finding.problem.graph;
  for (int v = 0; v < graph.size(); ++v) {
    const size_t i = static_cast<size_t>(v);
    const bool kept = finding.keeps(v);
    listing.AddRow(
        {Listing::Integer(v), Listing::Text(finding.labels[i]),
         finding.ids[i].empty() ? Listing::Nothing() : Listing::Integer(finding.ids[i].front()),
         Listing::Number(Mebibytes(graph.bytes(v)), graph.bytes(v).value()), Listing::YesNo(kept),
         Listing::YesNo(graph.must_keep(v)),
         kept ? Listing::Nothing() : Listing::Integer(finding.segments.segment_of[i])});
  }
  return listing;
}

}  // namespace stowage
