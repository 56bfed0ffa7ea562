#include "solvers/viz/pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/graph/checkpoint_graph.h"
#include "solvers/graph/checkpoint_set.h"
#include "solvers/viz/graph_drawing.h"
#include "solvers/viz/markup.h"

namespace stowage {
namespace {

constexpr const char* kUseNames[kMemoryUses] = {"saved",  "activations",   "gradients",
                                                "copies", "communication", "workspace"};

}  // namespace

const char* ColourOf(StepWork work) {
  static constexpr const char* kColours[kStepWorks] = {"#4583c0", "#ee9c2a", "#1d3c68", "#0f6b5c",
                                                       "#94d9c7", "#b9c0c9", kSoftInk};
  return kColours[static_cast<size_t>(work)];
}

const char* ColourOf(MemoryUse use) {
  static constexpr const char* kColours[kMemoryUses] = {"#1d3c68", "#4484c2", "#994a1c",
                                                        "#46b29b", "#dfadd0", "#f1e4b4"};
  return kColours[static_cast<size_t>(use)];
}

const char* TextColourOn(StepWork work) {
  const bool on_dark =
      work == StepWork::kForward || work == StepWork::kBackward || work == StepWork::kOffload;
  return on_dark ? "#ffffff" : kInk;
}

std::string PaletteCss() {
  std::string css =
      absl::StrCat("--paper:#ffffff;--ink:", kInk, ";--soft:", kSoftInk, ";--faint:", kFaint,
                   ";--lane:", kLaneGround, ";--budget:", kBudgetColour, ";");
  for (size_t w = 0; w < kStepWorks; ++w) {
    const StepWork work = static_cast<StepWork>(w);
    if (work == StepWork::kRelease) continue;
    absl::StrAppend(&css, "--", ToString(work), ":", ColourOf(work), ";--on-", ToString(work), ":",
                    TextColourOn(work), ";");
  }
  for (size_t u = 0; u < kMemoryUses; ++u) {
    absl::StrAppend(&css, "--", kUseNames[u], ":", ColourOf(static_cast<MemoryUse>(u)), ";");
  }
  return css;
}

namespace {

// Pixels.
constexpr double kLeft = 84;
constexpr double kRight = 78;
constexpr double kLane = 16;
constexpr double kLaneGap = 3;
constexpr double kHeadroom = 16;  // over memory, for its peak
constexpr double kCharacter = 6.0;
constexpr double kFinest = 0.5;

// A unit that numbers up to `top` are told in.
struct Unit {
  double size;
  const char* name;
};

Unit UnitOf(double top, double base, const std::array<const char*, 4>& names) {
  Unit unit{1, names[0]};
  for (size_t k = 1; k < names.size() && top / unit.size >= base; ++k) {
    unit = {unit.size * base, names[k]};
  }
  return unit;
}

std::string Text(double x, double y, const char* anchor, const char* colour,
                 const std::string& text, int size = 11) {
  return absl::StrFormat(
      "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\" font-size=\"%d\">%s</text>\n", x,
      y, anchor, colour, size, XmlEscaped(text));
}

std::string Line(double x1, double y1, double x2, double y2, const char* colour,
                 const char* more = "") {
  return absl::StrFormat(
      "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"%s/>\n", x1, y1, x2, y2,
      colour, more);
}

// What memory holds between two places of the axis.
struct Run {
  double from;
  double to;
  const MemoryByUse* memory;
};

class StepDrawing {
 public:
  StepDrawing(const DrawnPlan& plan, const StepFigure& figure)
      : plan_(plan),
        step_(plan.step),
        figure_(figure),
        right_(figure.width - kRight),
        end_(static_cast<double>(std::max<int64_t>(1, LastInstant().value()))),
        most_(static_cast<double>(std::max<int64_t>(1, MostMemory().value()))) {}

  std::string Draw() {
    if (!figure_.title.empty()) {
      svg_ += Text(kLeft, 18, "start", kInk, figure_.title, 13);
      y_ = 30;
    }
    DrawLanes();
    y_ += kHeadroom;
    DrawMemory();
    DrawAxis();
    DrawLegend();
    return absl::StrFormat(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
               "viewBox=\"0 0 %.0f %.0f\" font-family=\"Helvetica, Arial, sans-serif\">\n"
               "<defs><pattern id=\"wait\" width=\"4\" height=\"4\" "
               "patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">"
               "<rect width=\"1.4\" height=\"4\" fill=\"%s\"/></pattern></defs>\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n",
               figure_.width, y_, figure_.width, y_, kSoftInk) +
           svg_ + "</svg>\n";
  }

 private:
  Nanos LastInstant() const {
    Nanos last = step_.simulation.makespan;
    if (plan_.measured && last < plan_.measured->step_time) last = plan_.measured->step_time;
    return last;
  }

  // A budget far above what is used is not drawn: it would flatten the figure.
  bool ShowsBudget() const {
    return plan_.plan.budget.value() <= step_.simulation.peak.value() * 17 / 10;
  }

  Bytes MostMemory() const {
    Bytes most = step_.simulation.peak;
    if (ShowsBudget() && most < plan_.plan.budget) most = plan_.plan.budget;
    if (plan_.measured && most < plan_.measured->peak) most = plan_.measured->peak;
    return most;
  }

  double X(Nanos time) const {
    return kLeft + static_cast<double>(time.value()) / end_ * (right_ - kLeft);
  }
  double Y(Bytes bytes) const {
    return y_ + figure_.height * (1 - static_cast<double>(bytes.value()) / (1.02 * most_));
  }

  void DrawLanes() {
    static constexpr std::array<const char*, 4> kNames = {"compute", "to host", "to device",
                                                          "communication"};
    for (size_t s = 0; s < kNames.size(); ++s) {
      const Stream stream = static_cast<Stream>(s);
      const bool used = std::any_of(
          step_.events.begin(), step_.events.end(), [stream](const TimelineEvent& event) {
            return event.instruction.stream == stream && event.end > event.start;
          });
      if (!used) continue;
      DrawLane(kNames[s], [this, stream](size_t i, Nanos* start, Nanos* end) {
        *start = step_.events[i].start;
        *end = step_.events[i].end;
        return step_.events[i].instruction.stream == stream;
      });
    }
    if (!plan_.measured) return;
    DrawLane("measured", [this](size_t i, Nanos* start, Nanos* end) {
      *start = plan_.measured->instructions[i].start;
      *end = plan_.measured->instructions[i].end;
      return true;
    });
  }

  // `span` says when instruction i runs there, if it does.
  template <class Span>
  void DrawLane(const char* name, const Span& span) {
    svg_ += Text(kLeft - 6, y_ + kLane - 4, "end", kInk, name);
    absl::StrAppendFormat(
        &svg_, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.0f\" fill=\"%s\"/>\n", kLeft,
        y_, right_ - kLeft, kLane, kLaneGround);
    std::array<std::string, kStepWorks> paths;
    std::array<double, kStepWorks> gathered{};
    double column = -1;
    const auto add = [&](size_t work, double from, double to) {
      absl::StrAppendFormat(&paths[work], "M%.1f %.1fH%.1fv%.0fH%.1fZ", from, y_, to, kLane, from);
    };
    const auto flush = [&] {
      const auto most = std::max_element(gathered.begin(), gathered.end());
      if (*most > 0) add(static_cast<size_t>(most - gathered.begin()), column, column + kFinest);
      gathered.fill(0);
    };
    for (size_t i = 0; i < step_.events.size(); ++i) {
      Nanos start, end;
      if (!span(i, &start, &end) || end <= start) continue;
      const double from = X(start), to = X(end);
      const size_t work = static_cast<size_t>(step_.events[i].work);
      if (to - from >= kFinest) {
        add(work, from, to - from > 3 ? to - 0.5 : to);
        continue;
      }
      const double its = std::floor(from / kFinest) * kFinest;
      if (its != column) flush();
      column = its;
      gathered[work] += to - from;
    }
    flush();
    for (size_t w = 0; w < kStepWorks; ++w) {
      if (paths[w].empty()) continue;
      const StepWork work = static_cast<StepWork>(w);
      absl::StrAppend(&svg_, "<path d=\"", paths[w], "\" fill=\"", FillOf(work), "\"/>\n");
      works_[w] = true;
    }
    y_ += kLane + kLaneGap;
  }

  static std::string FillOf(StepWork work) {
    return work == StepWork::kWait ? "url(#wait)" : ColourOf(work);
  }

  std::vector<Run> Runs() const {
    std::vector<Run> runs;
    const auto add = [&runs](double from, double to, const MemoryByUse& memory) {
      const bool gathers = !runs.empty() && runs.back().to - runs.back().from < 1.01 * kFinest;
      if (gathers && to <= runs.back().to) {
        if (runs.back().memory->total() < memory.total()) runs.back().memory = &memory;
        return;
      }
      const double begin = runs.empty() ? from : std::max(from, runs.back().to);
      runs.push_back({begin, std::max(to, begin + kFinest), &memory});
    };
    for (size_t i = 0; i < step_.events.size(); ++i) {
      const TimelineEvent& event = step_.events[i];
      const Nanos next =
          i + 1 < step_.events.size() ? step_.events[i + 1].reached : step_.simulation.makespan;
      add(X(event.reached), X(event.left), event.running);
      add(X(event.left), X(next), event.held);
    }
    return runs;
  }

  void DrawMemory() {
    const Unit unit = UnitOf(most_, 1024, {"B", "KiB", "MiB", "GiB"});
    for (const double tick : Ticks(most_ / unit.size, 4)) {
      const double bytes = tick * unit.size;
      if (bytes > 1.02 * most_) break;
      const double y = Y(Bytes(static_cast<int64_t>(bytes)));
      svg_ += Line(kLeft, y, right_, y, tick == 0 ? kSoftInk : kFaint);
      svg_ += Text(kLeft - 6, y + 4, "end", kSoftInk,
                   tick == 0 ? "0" : absl::StrCat(tick, " ", unit.name));
    }
    const std::vector<Run> runs = Runs();
    std::vector<Bytes> low(runs.size());
    for (size_t u = 0; u < kMemoryUses; ++u) DrawArea(static_cast<MemoryUse>(u), runs, &low);
    if (ShowsBudget()) {
      const double y = Y(plan_.plan.budget);
      svg_ += Line(kLeft, y, right_, y, kBudgetColour, " stroke-dasharray=\"5 3\"");
      svg_ += Text(right_ + 6, y, "start", kBudgetColour, "budget");
      svg_ += Text(right_ + 6, y + 12, "start", kBudgetColour, ToString(plan_.plan.budget));
    }
    if (plan_.measured) DrawMeasured();
    DrawPeak();
    y_ += figure_.height;
  }

  void DrawArea(MemoryUse use, const std::vector<Run>& runs, std::vector<Bytes>* low) {
    std::vector<Bytes> high = *low;
    bool any = false;
    for (size_t r = 0; r < runs.size(); ++r) {
      high[r] += (*runs[r].memory)[use];
      any |= high[r] > (*low)[r];
    }
    if (!any) return;
    uses_[static_cast<size_t>(use)] = true;
    std::string path = absl::StrFormat("M%.1f %.1f", runs.front().from, Y((*low)[0]));
    for (size_t r = 0; r < runs.size(); ++r) {
      absl::StrAppendFormat(&path, "V%.1fH%.1f", Y(high[r]), runs[r].to);
    }
    for (size_t r = runs.size(); r-- > 0;) {
      absl::StrAppendFormat(&path, "V%.1fH%.1f", Y((*low)[r]), runs[r].from);
    }
    absl::StrAppend(&svg_, "<path d=\"", path, "Z\" fill=\"", ColourOf(use), "\"/>\n");
    *low = high;
  }

  void DrawMeasured() {
    std::string path;
    const auto go = [&](Nanos time, Bytes bytes) {
      if (path.empty()) {
        absl::StrAppendFormat(&path, "M%.1f %.1f", X(time), Y(bytes));
      } else {
        absl::StrAppendFormat(&path, "H%.1fV%.1f", X(time), Y(bytes));
      }
    };
    for (const MeasuredInstruction& i : plan_.measured->instructions) {
      go(i.start, i.peak);
      go(i.end, i.held_after);
    }
    if (path.empty()) return;
    absl::StrAppend(&svg_, "<path d=\"", path, "\" fill=\"none\" stroke=\"", kInk,
                    "\" stroke-width=\"1.2\"/>\n");
  }

  void DrawPeak() {
    const Bytes peak = step_.simulation.peak;
    for (const TimelineEvent& event : step_.events) {
      if (event.running.total() != peak && event.held.total() != peak) continue;
      const double x = (X(event.reached) + X(event.left)) / 2;
      svg_ += Line(x, y_ - 3, x, Y(peak), kInk, " stroke-width=\"0.8\"");
      const char* anchor = x > right_ - 50 ? "end" : x < kLeft + 50 ? "start" : "middle";
      svg_ += Text(x, y_ - 6, anchor, kInk, absl::StrCat("peak ", ToString(peak)));
      return;
    }
  }

  void DrawAxis() {
    const Unit unit = UnitOf(end_, 1000, {"ns", "us", "ms", "s"});
    for (const double tick : Ticks(end_ / unit.size, 7)) {
      const double x = X(Nanos(static_cast<int64_t>(tick * unit.size)));
      if (x > right_ + 0.5) break;
      svg_ += Line(x, y_, x, y_ + 4, kSoftInk);
      svg_ += Text(x, y_ + 16, "middle", kSoftInk,
                   tick == 0 ? "0" : absl::StrCat(tick, " ", unit.name));
    }
    svg_ += Line(kLeft, y_, right_, y_, kSoftInk);
    y_ += 34;
  }

  void DrawLegend() {
    double x = kLeft;
    const auto add = [&](const std::string& fill, const std::string& text) {
      const double width = 16 + kCharacter * static_cast<double>(text.size()) + 10;
      if (x > kLeft && x + width > figure_.width) {
        x = kLeft;
        y_ += 16;
      }
      absl::StrAppendFormat(
          &svg_, "<rect x=\"%.1f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>\n", x,
          y_ - 9, fill);
      svg_ += Text(x + 14, y_, "start", kInk, text);
      x += width;
    };
    for (size_t w = 0; w < kStepWorks; ++w) {
      const StepWork work = static_cast<StepWork>(w);
      if (works_[w]) add(FillOf(work), ToString(work));
    }
    x = kLeft;
    y_ += 16;
    for (size_t u = kMemoryUses; u-- > 0;) {
      const MemoryUse use = static_cast<MemoryUse>(u);
      if (uses_[u]) add(ColourOf(use), ToString(use));
    }
    y_ += 10;
  }

  const DrawnPlan& plan_;
  const StepTimeline& step_;
  const StepFigure& figure_;
  const double right_;
  const double end_;   // of the time axis, nanoseconds
  const double most_;  // of the memory axis, bytes
  double y_ = 6;       // where the next part begins
  std::string svg_;
  std::array<bool, kStepWorks> works_{};  // that were drawn
  std::array<bool, kMemoryUses> uses_{};
};

}  // namespace

std::string StepSvg(const DrawnPlan& plan, const StepFigure& figure) {
  return StepDrawing(plan, figure).Draw();
}

namespace {

// Vertices of which no member runs forward twice, and those that every set must have.
std::vector<int> KeptOf(const CheckpointProblem& problem, const DrawnPlan& plan) {
  std::vector<int> kept;
  for (int v = 0; v < problem.graph.size(); ++v) {
    const std::vector<int>& members = problem.members[static_cast<size_t>(v)];
    const bool recomputed = std::any_of(members.begin(), members.end(), [&plan](int p) {
      return plan.stages[static_cast<size_t>(p) + 1].forwards > 1;
    });
    const bool end = v == problem.graph.source() || v == problem.graph.target();
    if (!recomputed || end || problem.graph.must_keep(v)) kept.push_back(v);
  }
  return kept;
}

}  // namespace

absl::StatusOr<std::string> GraphPicture(const Graph& graph, const DrawnPlan& plan,
                                         GraphPictureForm form) {
  const absl::StatusOr<CheckpointProblem> problem = MakeCheckpointProblem(graph);
  if (!problem.ok()) return problem.status();
  GraphDrawing drawing;
  drawing.title = absl::StrCat(graph.name(), ", ", plan.label);
  drawing.labels = LabelsOf(graph, *problem);
  drawing.rule = SegmentRule::kSeveralEndPoints;
  drawing.checkpoints = KeptOf(*problem, plan);
  if (!ValidateCheckpoints(problem->graph, drawing.checkpoints, drawing.rule).ok()) {
    drawing.checkpoints.clear();
  }
  return form == GraphPictureForm::kSvg ? DrawSvg(problem->graph, drawing)
                                        : DrawDot(problem->graph, drawing);
}

}  // namespace stowage
