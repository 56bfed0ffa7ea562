#include "solvers/report/report_data.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "solvers/base/text_escape.h"

namespace stowage {
namespace {

constexpr char kStage[] = "%";

// A list of numbers, of what `value` makes of each item.
template <class Items, class Value>
std::string Numbers(const Items& items, const Value& value) {
  std::string list = "[";
  for (const auto& item : items) {
    absl::StrAppend(&list, list.size() > 1 ? "," : "", static_cast<int64_t>(value(item)));
  }
  return list + "]";
}

// The same of differences to the value before; the first's is 0.
template <class Items, class Value>
std::string Differences(const Items& items, const Value& value) {
  int64_t before = 0;
  return Numbers(items, [&](const auto& item) {
    const int64_t now = value(item);
    const int64_t difference = now - before;
    before = now;
    return difference;
  });
}

std::string Texts(const std::vector<std::string>& texts) {
  return absl::StrCat("[",
                      absl::StrJoin(texts, ",",
                                    [](std::string* out, const std::string& text) {
                                      out->append(JsonString(text));
                                    }),
                      "]");
}

std::string Points(const std::vector<TradeOff>& points) {
  return absl::StrCat("[",
                      absl::StrJoin(points, ",",
                                    [](std::string* out, const TradeOff& p) {
                                      absl::StrAppend(out, "[", p.memory.value(), ",",
                                                      p.makespan.value(), "]");
                                    }),
                      "]");
}

// Patterns of all instructions' texts, by number.
class Patterns {
 public:
  int64_t NumberOf(const TimelineEvent& event) {
    const auto [found, is_new] =
        numbers_.emplace(EventText(event, kStage), static_cast<int64_t>(texts_.size()));
    if (is_new) texts_.push_back(found->first);
    return found->second;
  }
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::map<std::string, int64_t> numbers_;
  std::vector<std::string> texts_;
};

// What stages make: what storing them takes.
struct StageColumns {
  std::vector<std::string> op = {""};
  std::vector<int64_t> made, forward, backward;

  void Add(const std::string& op_kind, Bytes bytes, Nanos forward_time, Nanos backward_time) {
    op.push_back(op_kind);
    made.push_back(bytes.value());
    forward.push_back(forward_time.value());
    backward.push_back(backward_time.value());
  }
};

StageColumns ColumnsOf(const Problem& problem) {
  StageColumns columns;
  columns.forward = columns.backward = {0};
  if (const Graph* graph = std::get_if<Graph>(&problem)) {
    columns.made = {0};
    for (int p = 0; p < graph->size(); ++p) {
      const Vertex& v = graph->vertex(p);
      columns.Add(v.op_kind, graph->bytes(p) + v.extra_saved, v.forward_time, v.backward_time);
    }
    return columns;
  }
  const Chain& chain = std::get<Chain>(problem);
  columns.made = {chain.activation(0).value()};
  for (int l = 1; l <= chain.length() + 1; ++l) {
    const Stage& s = chain.stage(l);
    columns.Add(s.op_kind, s.saved, s.forward_time, s.backward_time);
  }
  return columns;
}

std::string StageData(const Problem& problem) {
  const StageColumns columns = ColumnsOf(problem);
  const auto same = [](int64_t n) { return n; };
  return absl::StrCat("{\"label\":", Texts(StageLabels(problem)), ",\"op\":", Texts(columns.op),
                      ",\"made\":", Numbers(columns.made, same),
                      ",\"forward_ns\":", Numbers(columns.forward, same),
                      ",\"backward_ns\":", Numbers(columns.backward, same), "}");
}

std::string MemoryData(const StepTimeline& step) {
  std::string columns;
  for (size_t u = 0; u < kMemoryUses; ++u) {
    std::vector<int64_t> bytes;
    bool any = false;
    for (const TimelineEvent& event : step.events) {
      for (const MemoryByUse* memory : {&event.running, &event.held}) {
        bytes.push_back(memory->bytes[u].value());
        any |= bytes.back() != 0;
      }
    }
    if (!any) bytes.clear();
    absl::StrAppend(&columns, u == 0 ? "" : ",", Differences(bytes, [](int64_t b) { return b; }));
  }
  return absl::StrCat("[", columns, "]");
}

std::string MeasuredData(const MeasuredStep& step) {
  const auto& list = step.instructions;
  return absl::StrCat(
      "{\"peak_bytes\":", step.peak.value(), ",\"step_time_ns\":", step.step_time.value(),
      ",\"start\":", Differences(list, [](const auto& i) { return i.start.value(); }),
      ",\"duration\":", Numbers(list, [](const auto& i) { return (i.end - i.start).value(); }),
      ",\"peak\":", Differences(list, [](const auto& i) { return i.peak.value(); }),
      ",\"held\":", Differences(list, [](const auto& i) { return i.held_after.value(); }), "}");
}

std::string PlanData(const DrawnPlan& plan, Patterns* patterns) {
  const std::vector<TimelineEvent>& events = plan.step.events;
  const auto column = [&events](const auto& value) { return Numbers(events, value); };
  std::string data = absl::StrCat("{\"label\":", JsonString(plan.label),
                                  ",\"budget_bytes\":", plan.plan.budget.value(),
                                  ",\"makespan_ns\":", plan.step.simulation.makespan.value());
  absl::StrAppend(
      &data, ",\"work\":", column([](const auto& e) { return static_cast<int64_t>(e.work); }),
      ",\"stage\":", column([](const auto& e) { return e.instruction.stage; }), ",\"stream\":",
      column([](const auto& e) { return static_cast<int64_t>(e.instruction.stream); }),
      ",\"pattern\":", column([patterns](const auto& e) { return patterns->NumberOf(e); }));
  absl::StrAppend(&data,
                  ",\"start\":", Differences(events, [](const auto& e) { return e.start.value(); }),
                  ",\"duration\":", column([](const auto& e) { return (e.end - e.start).value(); }),
                  ",\"memory\":", MemoryData(plan.step),
                  ",\"host\":", Differences(events, [](const auto& e) { return e.host.value(); }));
  const auto stages = [&plan](const auto& value) { return Numbers(plan.stages, value); };
  absl::StrAppend(&data,
                  ",\"role\":", stages([](const auto& s) { return static_cast<int64_t>(s.role); }),
                  ",\"forwards\":", stages([](const auto& s) { return s.forwards; }),
                  ",\"sent\":", stages([](const auto& s) { return s.sent.value(); }));
  if (plan.measured) absl::StrAppend(&data, ",\"measured\":", MeasuredData(*plan.measured));
  return data + "}";
}

std::string FrontierData(const Report& report) {
  const Bounds& bounds = report.plans.front().plan.bounds;
  const std::string curves =
      absl::StrJoin(report.curves, ",", [](std::string* out, const ReportCurve& curve) {
        absl::StrAppend(out, "{\"label\":", JsonString(curve.label),
                        ",\"points\":", Points(curve.points), "}");
      });
  const std::string others =
      absl::StrJoin(report.others, ",", [](std::string* out, const ReportStrategy& other) {
        absl::StrAppend(out, "{\"label\":", JsonString(other.label),
                        ",\"bytes\":", other.at.memory.value(),
                        ",\"time\":", other.at.makespan.value(), "}");
      });
  return absl::StrCat("{\"curves\":[", curves, "],\"others\":[", others,
                      "],\"bound\":", Points(report.bound),
                      ",\"plain\":{\"bytes\":", bounds.store_all_peak.value(),
                      ",\"time\":", bounds.store_all_makespan.value(), "}}");
}

}  // namespace

std::string ReportData(const Problem& problem, const Report& report) {
  Patterns patterns;
  const std::string plans =
      absl::StrJoin(report.plans, ",\n", [&patterns](std::string* out, const DrawnPlan& plan) {
        out->append(PlanData(plan, &patterns));
      });
  std::vector<std::string> works, uses;
  for (size_t w = 0; w < kStepWorks; ++w) works.push_back(ToString(static_cast<StepWork>(w)));
  for (size_t u = 0; u < kMemoryUses; ++u) uses.push_back(ToString(static_cast<MemoryUse>(u)));
  const int first_stage = std::holds_alternative<Chain>(problem) ? 0 : 1;
  return absl::StrCat("{\"works\":", Texts(works), ",\"uses\":", Texts(uses),
                      ",\"first_stage\":", first_stage, ",\"stages\":", StageData(problem),
                      ",\n\"plans\":[", plans, "],\n\"patterns\":", Texts(patterns.texts()),
                      ",\"frontier\":", FrontierData(report), "}");
}

}  // namespace stowage
