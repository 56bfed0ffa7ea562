#include "tests/solvers/viz/report_sample.h"

#include <optional>
#include <utility>

#include "solvers/schedule/instance.h"

namespace stowage::testing {
namespace {

Stage MakeStage(const std::string& name, int64_t size) {
  Stage stage;
  stage.name = name;
  stage.op_kind = "op";
  stage.forward_time = Nanos(10 * size);
  stage.backward_time = Nanos(20 * size + 5);
  stage.output = Bytes(100 * size);
  stage.saved = Bytes(150 * size);
  stage.output_gradient = Bytes(100 * size);
  stage.forward_overhead = Bytes(10);
  stage.forward_saving_overhead = Bytes(20);
  stage.backward_overhead = Bytes(30 + 100 * size);
  return stage;
}

}  // namespace

Instance SampleProblem() {
  ChainSpec spec;
  spec.name = "sample \"net\"";
  spec.input = Bytes(1000);
  spec.stages = {MakeStage("first", 100), MakeStage("</script><b>'\"&", 200),
                 MakeStage("r\xc3\xa9seau", 50)};
  spec.loss = MakeStage("", 1);
  spec.loss.op_kind = "";
  const CopyCost cost{int64_t{1000000000}, Nanos(25)};  // a byte a nanosecond
  return {Chain::Create(spec).value(), TransferModel{cost, cost, true, Bytes(5000)}};
}

Plan SamplePlan() {
  Plan plan;
  plan.status = PlanStatus::kFound;
  plan.budget = Bytes(100000);
  plan.schedule = {ForwardNoSave(1),
                   OffloadStart(TensorKind::kActivation, 0),
                   ForwardSave(2),
                   OffloadWait(TensorKind::kActivation, 0),
                   Discard(TensorKind::kActivation, 1),
                   ForwardSave(3),
                   ForwardSave(4),
                   Backward(4),
                   Backward(3),
                   PrefetchStart(TensorKind::kActivation, 0),
                   PrefetchWait(TensorKind::kActivation, 0),
                   ForwardSave(1),
                   Backward(2),
                   Backward(1)};
  plan.bounds.schedule_class = "any schedules";
  plan.provenance.solver = "by_hand";
  const absl::Status status = ValidatePlan(SampleProblem(), &plan);
  if (!status.ok()) std::abort();
  return plan;
}

MeasuredStep SampleMeasured() {
  const DrawnPlan plan = SampleDrawn(false);
  MeasuredStep step;
  step.schedule = ScheduleDigest(plan.plan.schedule);
  for (const TimelineEvent& event : plan.step.events) {
    step.instructions.push_back({Nanos(event.reached.value() * 11 / 10),
                                 Nanos(event.left.value() * 11 / 10), event.running.total(),
                                 event.held.total()});
  }
  step.peak = plan.step.simulation.peak;
  step.step_time = Nanos(plan.step.simulation.makespan.value() * 11 / 10);
  return step;
}

DrawnPlan SampleDrawn(bool measured) {
  return DrawPlan(SampleProblem(), "100 kB", SamplePlan(),
                  measured ? std::optional<MeasuredStep>(SampleMeasured()) : std::nullopt)
      .value();
}

}  // namespace stowage::testing
