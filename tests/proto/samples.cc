#include "tests/proto/samples.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"

namespace stowage {
namespace {

void FillDevice(v1::Device* device) {
  device->set_model("cpu");
  device->set_framework("libtorch 1.13.1");
  device->set_math_settings("deterministic;tf32=off");
  device->set_allocation_granularity_bytes(512);
  device->set_bandwidth_class(7);
  device->set_duplex(v1::DUPLEX_FULL);
  device->set_host_memory_bytes(int64_t{32} << 30);
  device->set_to_host_bytes_per_second(11000000000);
  device->set_to_device_bytes_per_second(12000000000);
  device->set_to_host_latency_ns(9000);
  device->set_to_device_latency_ns(8000);
  device->set_memory_bytes(int64_t{80} << 30);
}

void FillStage(int index, v1::Stage* stage) {
  const int64_t base = 1000 * (index + 1);
  stage->set_name(absl::StrCat("block", index));
  stage->set_op_kind("conv2d");
  stage->set_forward_time_ns(base + 1);
  stage->set_backward_time_ns(base + 2);
  stage->set_output_bytes(base + 3);
  stage->set_saved_bytes(2 * base + 4);
  stage->set_output_gradient_bytes(base + 5);
  stage->set_forward_saving_overhead_bytes(base + 6);
  stage->set_forward_overhead_bytes(base + 7);
  stage->set_backward_overhead_bytes(base + 8);
  stage->set_random(index == 0);
  stage->set_stateful(index == 1);
  stage->set_collective(index == 2);
  stage->set_must_keep(index == 2);
  stage->set_transient_parameter_bytes(base + 9);
}

struct VertexPlace {
  int64_t id;
  int64_t program_order;
  std::vector<int64_t> reads;
};

void FillVertex(int index, const VertexPlace& place, v1::Vertex* vertex) {
  const int64_t base = 1000 * (index + 1);
  vertex->set_id(place.id);
  vertex->set_name(absl::StrCat("tensor", index));
  vertex->set_op_kind(absl::StrCat("op", index));
  vertex->set_program_order(place.program_order);
  for (const int64_t read : place.reads) {
    v1::Edge* edge = vertex->add_inputs();
    edge->set_vertex_id(read);
    edge->set_backward_needs(read < 40);
  }
  vertex->set_output_bytes(base + 1);
  vertex->set_output_gradient_bytes(base + 2);
  vertex->set_extra_saved_bytes(base + 3);
  vertex->set_backward_needs_output(index == 2);
  vertex->set_forward_time_ns(base + 4);
  vertex->set_backward_time_ns(base + 5);
  vertex->set_forward_saving_overhead_bytes(base + 6);
  vertex->set_forward_overhead_bytes(base + 7);
  vertex->set_backward_overhead_bytes(base + 8);
  vertex->set_alias(index == 4 ? v1::ALIAS_KIND_VIEW : v1::ALIAS_KIND_UNSPECIFIED);
  vertex->set_linear_multi_input(index == 3);
  vertex->set_random(index == 0);
  vertex->set_stateful(index == 1);
  vertex->set_collective(index == 2);
  vertex->set_must_keep(index == 3);
  vertex->set_transient_parameter_bytes(base + 9);
}

void AddInstruction(v1::Op op, int stage, v1::TensorKind tensor, v1::Stream stream,
                    v1::Schedule* schedule) {
  v1::Instruction* instruction = schedule->add_instructions();
  instruction->set_op(op);
  instruction->set_stage(stage);
  instruction->set_tensor(tensor);
  instruction->set_stream(stream);
}

// Not a schedule that the evaluator would take: one of each.
void FillSchedule(v1::Schedule* schedule) {
  const auto add = [schedule](v1::Op op, int stage, v1::TensorKind tensor, v1::Stream stream) {
    AddInstruction(op, stage, tensor, stream, schedule);
  };
  add(v1::OP_FORWARD_SAVE, 1, v1::TENSOR_KIND_UNSPECIFIED, v1::STREAM_COMPUTE);
  add(v1::OP_FORWARD_NO_SAVE, 2, v1::TENSOR_KIND_UNSPECIFIED, v1::STREAM_COMPUTE);
  add(v1::OP_FORWARD_NO_SAVE_FREE_INPUT, 3, v1::TENSOR_KIND_UNSPECIFIED, v1::STREAM_COMMUNICATION);
  add(v1::OP_OFFLOAD_START, 1, v1::TENSOR_KIND_SAVED, v1::STREAM_TO_HOST);
  add(v1::OP_OFFLOAD_WAIT, 1, v1::TENSOR_KIND_SAVED, v1::STREAM_COMPUTE);
  add(v1::OP_PREFETCH_START, 1, v1::TENSOR_KIND_SAVED, v1::STREAM_TO_DEVICE);
  add(v1::OP_PREFETCH_WAIT, 1, v1::TENSOR_KIND_SAVED, v1::STREAM_COMPUTE);
  add(v1::OP_BACKWARD, 4, v1::TENSOR_KIND_UNSPECIFIED, v1::STREAM_COMPUTE);
  add(v1::OP_DROP_SAVED_KEEP_OUTPUT, 3, v1::TENSOR_KIND_UNSPECIFIED, v1::STREAM_COMPUTE);
  add(v1::OP_DISCARD, 0, v1::TENSOR_KIND_ACTIVATION, v1::STREAM_COMPUTE);
}

Schedule ScheduleOfSample() {
  return {ForwardSave(1),
          ForwardNoSave(2),
          {Op::kForwardNoSaveFreeInput, 3, TensorKind::kActivation, Stream::kCommunication},
          {Op::kOffloadStart, 1, TensorKind::kSaved, Stream::kToHost},
          {Op::kOffloadWait, 1, TensorKind::kSaved, Stream::kCompute},
          {Op::kPrefetchStart, 1, TensorKind::kSaved, Stream::kToDevice},
          {Op::kPrefetchWait, 1, TensorKind::kSaved, Stream::kCompute},
          Backward(4),
          DropSavedKeepOutput(3),
          Discard(TensorKind::kActivation, 0)};
}

void FillBounds(v1::Bounds* bounds) {
  bounds->set_store_all_makespan_ns(400);
  bounds->set_store_all_peak_bytes(900);
  bounds->set_lower_bound_ns(400);
  bounds->set_gap(0.25);
  bounds->set_proven_optimal(true);
  bounds->set_schedule_class("memory-persistent schedules");
  bounds->set_least_budget_bytes(300);
}

}  // namespace

v1::Profile SampleChainProfile() {
  v1::Profile profile;
  profile.set_name("sample chain");
  FillDevice(profile.mutable_device());
  profile.set_cost_source(v1::COST_SOURCE_MEASURED);
  v1::Chain* chain = profile.mutable_chain();
  chain->set_input_bytes(150528);
  chain->set_input_gradient_bytes(64);
  for (int i = 0; i < 3; ++i) FillStage(i, chain->add_stages());
  FillStage(3, chain->mutable_loss());
  return profile;
}

v1::Profile SampleChainProfileWithSavedTensors() {
  v1::Profile profile = SampleChainProfile();
  for (v1::Stage& stage : *profile.mutable_chain()->mutable_stages()) {
    stage.add_saved_tensor_bytes(stage.output_bytes() / 3);
    stage.add_saved_tensor_bytes(stage.output_bytes() / 2);
  }
  profile.mutable_chain()->mutable_loss()->add_saved_tensor_bytes(7);
  return profile;
}

v1::Profile SampleGraphProfile() {
  v1::Profile profile;
  profile.set_name("sample graph");
  FillDevice(profile.mutable_device());
  profile.set_cost_source(v1::COST_SOURCE_MODELLED);
  const std::vector<VertexPlace> places = {
      {10, 2, {}}, {40, 4, {}}, {30, 6, {10}}, {20, 9, {30, 40}}, {50, 12, {20}}};
  for (size_t i = 0; i < places.size(); ++i) {
    FillVertex(static_cast<int>(i), places[i], profile.mutable_graph()->add_vertices());
  }
  return profile;
}

v1::Profile SampleDagProfile() {
  v1::Profile profile;
  profile.set_name("sample dag");
  FillDevice(profile.mutable_device());
  profile.set_cost_source(v1::COST_SOURCE_MEASURED);
  const std::vector<VertexPlace> places = {
      {50, 12, {20}}, {10, 2, {}}, {40, 4, {10}}, {30, 6, {10}}, {20, 9, {40, 30}}};
  for (size_t i = 0; i < places.size(); ++i) {
    const int64_t base = 1000 * static_cast<int64_t>(i + 1);
    v1::Node* node = profile.mutable_dag()->add_nodes();
    node->set_id(places[i].id);
    node->set_name(absl::StrCat("node", i));
    node->set_op_kind(absl::StrCat("aten", i));
    node->set_program_order(places[i].program_order);
    for (const int64_t read : places[i].reads) node->add_inputs(read);
    node->set_output_bytes(base + 1);
    node->set_time_ns(base + 2);
    node->set_workspace_bytes(base + 3);
    node->set_result(i == 0 || i == 4);
    node->set_alias(i == 0 ? v1::ALIAS_KIND_VIEW : v1::ALIAS_KIND_UNSPECIFIED);
    node->set_random(i == 1);
    node->set_stateful(i == 2);
    node->set_collective(i == 3);
    node->set_must_keep(i == 4);
    node->set_transient_parameter_bytes(base + 4);
  }
  return profile;
}

v1::Plan SamplePlan() {
  v1::Plan plan;
  plan.set_status(v1::PLAN_STATUS_FOUND);
  plan.set_budget_bytes(600);
  FillSchedule(plan.mutable_schedule());
  v1::Prediction* prediction = plan.mutable_prediction();
  prediction->set_makespan_ns(500);
  prediction->set_peak_bytes(590);
  prediction->set_recompute_time_ns(90);
  prediction->set_idle_time_ns(10);
  prediction->set_recomputed_forwards(2);
  prediction->set_host_peak_bytes(700);
  prediction->set_offloaded_bytes(1500);
  prediction->set_prefetched_bytes(1400);
  prediction->set_communication_time_ns(70);
  FillBounds(plan.mutable_bounds());
  v1::Provenance* provenance = plan.mutable_provenance();
  provenance->set_solver("optimal_persistent");
  provenance->set_solver_version("0.1.0");
  provenance->set_solve_time_ns(123456);
  provenance->set_slots(500);
  for (const int64_t id : {40, 10}) plan.add_stage_vertices()->add_vertex_ids(id);
  plan.mutable_stage_vertices(1)->add_vertex_ids(30);
  plan.set_digest(ScheduleDigest(ScheduleOfSample()).ToBinary());
  plan.set_revision(3);
  plan.set_explanation("recomputes stage 2");
  plan.set_search_complete(true);
  return plan;
}

}  // namespace stowage
