#include "solvers/viz/chrome_trace.h"

#include <array>
#include <cstddef>
#include <set>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "solvers/base/text_escape.h"

namespace stowage {
namespace {

constexpr int kPlanned = 1;
constexpr int kMeasured = 2;
// Where an event is of no thread; without one, readers make one up.
constexpr char kOfProcess[] = "\"tid\":1,";

std::string Microseconds(Nanos time) {
  return absl::StrFormat("%d.%03d", time.value() / 1000, time.value() % 1000);
}

int ThreadOf(Stream stream) { return static_cast<int>(stream) + 1; }

// What takes no time by its nature is an instant, not a slice.
bool IsInstant(StepWork work, Nanos time) {
  return work == StepWork::kRelease || (work == StepWork::kWait && time == Nanos(0));
}

class TraceWriter {
 public:
  explicit TraceWriter(const Problem& problem) : labels_(StageLabels(problem)) {}

  std::string Write(const Problem& problem, const DrawnPlan& plan) {
    NameProcess(kPlanned, "planned");
    for (const TimelineEvent& event : plan.step.events) NameThread(event.instruction.stream);
    FindUses(plan.step.events);
    for (size_t i = 0; i < plan.step.events.size(); ++i) AddPlanned(i, plan.step.events[i]);
    if (plan.measured) AddMeasured(plan, *plan.measured);
    return Header(problem, plan) + events_ + "\n]}\n";
  }

 private:
  static std::string Header(const Problem& problem, const DrawnPlan& plan) {
    const std::string name = std::visit([](const auto& kind) { return kind.name(); }, problem);
    const Simulation& predicted = plan.step.simulation;
    std::string other = absl::StrCat(
        "\"network\":", JsonString(name), ",\"plan\":", JsonString(plan.label),
        ",\"solver\":", JsonString(plan.plan.provenance.solver),
        ",\"budget_bytes\":", plan.plan.budget.value(), ",\"peak_bytes\":", predicted.peak.value(),
        ",\"makespan_ns\":", predicted.makespan.value());
    if (plan.measured) {
      absl::StrAppend(&other, ",\"measured_peak_bytes\":", plan.measured->peak.value(),
                      ",\"measured_step_time_ns\":", plan.measured->step_time.value());
    }
    return absl::StrCat("{\"displayTimeUnit\":\"ns\",\"otherData\":{", other,
                        "},\"traceEvents\":[");
  }

  // An event of a phase; `rest` are its other fields.
  void Add(char phase, int process, const std::string& rest) {
    absl::StrAppend(&events_, events_.empty() ? "\n" : ",\n", "{\"ph\":\"", std::string(1, phase),
                    "\",\"pid\":", process, ",", rest, "}");
  }

  void NameProcess(int process, const char* name) {
    Add('M', process,
        absl::StrCat(kOfProcess, "\"name\":\"process_name\",\"args\":{\"name\":\"", name, "\"}"));
    Add('M', process,
        absl::StrCat(kOfProcess,
                     "\"name\":\"process_sort_index\",\"args\":{\"sort_index\":", process, "}"));
  }

  void NameThread(Stream stream, int process = kPlanned) {
    if (!named_.insert({process, stream}).second) return;
    const std::string thread = absl::StrCat("\"tid\":", ThreadOf(stream), ",\"name\":\"thread_");
    Add('M', process,
        absl::StrCat(thread, "name\",\"args\":{\"name\":\"", ToString(stream), "\"}"));
    Add('M', process,
        absl::StrCat(thread, "sort_index\",\"args\":{\"sort_index\":", ThreadOf(stream), "}"));
  }

  // An instruction from `start` to `end` on a thread.
  void AddSlice(int process, Stream stream, size_t index, const TimelineEvent& event, Nanos start,
                Nanos end) {
    const bool instant = IsInstant(event.work, end - start);
    const std::string how =
        instant ? "\"s\":\"t\"" : absl::StrCat("\"dur\":", Microseconds(end - start));
    Add(instant ? 'i' : 'X', process,
        absl::StrCat(
            "\"tid\":", ThreadOf(stream), ",\"ts\":", Microseconds(start), ",", how, ",\"name\":",
            JsonStringUtf8(EventText(event, labels_[static_cast<size_t>(event.instruction.stage)])),
            ",\"cat\":\"", ToString(event.work), "\",\"args\":{\"index\":", index,
            ",\"instruction\":\"", ToString(event.instruction), "\"}"));
  }

  void AddCounter(int process, Nanos time, const char* name, const std::string& values) {
    Add('C', process,
        absl::StrCat(kOfProcess, "\"ts\":", Microseconds(time), ",\"name\":\"", name,
                     "\",\"args\":{", values, "}"));
  }

  void AddTotal(int process, Nanos time, Bytes bytes) {
    AddCounter(process, time, "total memory", absl::StrCat("\"bytes\":", bytes.value()));
  }

  // Of what memory is used for at all; a track that is empty throughout tells nothing.
  void FindUses(const std::vector<TimelineEvent>& events) {
    for (const TimelineEvent& event : events) {
      for (size_t u = 0; u < kMemoryUses; ++u) {
        used_[u] |= event.running.bytes[u] > Bytes(0) || event.held.bytes[u] > Bytes(0);
      }
    }
  }

  void AddMemory(Nanos time, const MemoryByUse& memory) {
    if (memory_known_ && memory == memory_) return;
    memory_known_ = true;
    memory_ = memory;
    std::string values;
    for (size_t u = 0; u < kMemoryUses; ++u) {
      if (!used_[u]) continue;
      absl::StrAppend(&values, values.empty() ? "" : ",", "\"", ToString(static_cast<MemoryUse>(u)),
                      "\":", memory.bytes[u].value());
    }
    AddCounter(kPlanned, time, "memory", values);
    AddTotal(kPlanned, time, memory.total());
  }

  void AddPlanned(size_t index, const TimelineEvent& event) {
    AddSlice(kPlanned, event.instruction.stream, index, event, event.start, event.end);
    AddMemory(event.reached, event.running);
    AddMemory(event.left, event.held);
    if (event.host == host_) return;
    host_ = event.host;
    AddCounter(kPlanned, event.left, "host memory", absl::StrCat("\"bytes\":", host_.value()));
  }

  void AddMeasured(const DrawnPlan& plan, const MeasuredStep& step) {
    NameProcess(kMeasured, "measured");
    NameThread(Stream::kCompute, kMeasured);
    for (size_t i = 0; i < step.instructions.size(); ++i) {
      const MeasuredInstruction& measured = step.instructions[i];
      AddSlice(kMeasured, Stream::kCompute, i, plan.step.events[i], measured.start, measured.end);
      AddTotal(kMeasured, measured.start, measured.peak);
      AddTotal(kMeasured, measured.end, measured.held_after);
    }
  }

  const std::vector<std::string> labels_;
  std::string events_;
  std::set<std::pair<int, Stream>> named_;
  std::array<bool, kMemoryUses> used_{};
  bool memory_known_ = false;
  MemoryByUse memory_;  // that the last counter said
  Bytes host_;
};

}  // namespace

std::string ChromeTrace(const Problem& problem, const DrawnPlan& plan) {
  return TraceWriter(problem).Write(problem, plan);
}

}  // namespace stowage
