#include "tests/server/support/profiles.h"

#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>

#include "solvers/planner.h"

namespace stowage::testing {
namespace {

template <class T>
T Must(absl::StatusOr<T> value) {
  if (value.ok()) return *std::move(value);
  std::cerr << value.status() << "\n";
  std::abort();
}

}  // namespace

Profile ChainProfile(const ProfileShape& shape) {
  ChainSpec spec;
  spec.name = "test";
  spec.input = Bytes(shape.output);
  for (int i = 0; i < shape.stages; ++i) {
    Stage stage;
    stage.op_kind = "op" + std::to_string(i);
    if (shape.timed) stage.forward_time = Nanos(shape.forward_time + i);
    if (shape.timed) stage.backward_time = Nanos(2 * shape.forward_time);
    stage.output = Bytes(shape.output);
    stage.saved = Bytes(3 * shape.output);
    stage.output_gradient = Bytes(shape.output);
    stage.forward_saving_overhead = Bytes(shape.overhead);
    stage.forward_overhead = Bytes(shape.overhead);
    stage.backward_overhead = Bytes(shape.output + shape.overhead);
    spec.stages.push_back(stage);
  }
  Device device;
  device.host_memory = Bytes(shape.host_memory);
  device.bandwidth_class = shape.link_class;
  device.to_host_bytes_per_second = device.to_device_bytes_per_second = shape.bandwidth;
  device.to_host_latency = device.to_device_latency = Nanos(shape.latency);
  return Profile{"test", device, Must(Chain::Create(std::move(spec))), CostSource::kMeasured};
}

Profile ProfileOfLength(int stages) {
  ProfileShape shape;
  shape.stages = stages;
  return ChainProfile(shape);
}

Profile GraphProfile(int vertices, int64_t first_id, int64_t step) {
  GraphSpec spec;
  spec.name = "test graph";
  for (int i = 0; i < vertices; ++i) {
    Vertex vertex;
    vertex.id = first_id + i * step;
    vertex.op_kind = "op";
    vertex.program_order = i;
    if (i > 0) vertex.inputs.push_back(GraphInput{vertex.id - step, true});
    vertex.output = Bytes(100);
    vertex.output_gradient = Bytes(100);
    vertex.extra_saved = Bytes(200);
    vertex.forward_time = Nanos(10);
    vertex.backward_time = Nanos(20);
    spec.vertices.push_back(vertex);
  }
  return Profile{"test", Device(), Must(Graph::Create(std::move(spec))), CostSource::kMeasured};
}

Bytes StoreAllPeak(const Profile& profile) {
  return Must(ResolveBudget(profile.problem, ShareOfStoreAll{1.0}, PlanOptions()));
}

Bytes LeastPeak(const Profile& profile) {
  return Must(ResolveBudget(profile.problem, LeastBudget{}, PlanOptions()));
}

}  // namespace stowage::testing
