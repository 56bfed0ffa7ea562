// Small networks that are no chains, their training, and steps by schedules held against the evaluator.
#ifndef STOWAGE_TESTS_CLIENT_TORCH_TEST_GRAPHS_H_
#define STOWAGE_TESTS_CLIENT_TORCH_TEST_GRAPHS_H_

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <string>
#include <vector>

#include "client/torch/base/tensors.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/model/graph_model.h"
#include "client/torch/model/model_state.h"
#include "client/torch/offload/execution_device.h"
#include "solvers/model/graph.h"
#include "solvers/model/problem.h"
#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"
#include "tests/client/device/training_devices.h"

namespace stowage {

inline constexpr Bytes kScalars = Bytes(64);

struct TestGraph {
  GraphModel model;
  std::vector<at::Tensor> inputs;
  Tensors target;  // or several
  // What of a predicted peak its steps may not take: scalars at least, each in a block of its own.
  Bytes over_predicted = kScalars;
};

// "mixed": two inputs, two losses, a view, ops in place, a tensor with three readers, one read twice by
// the same node, random and stateful nodes, a frozen one, and a node that nobody trains by.
// "grad_kernels": nodes that compute in another way without a graph, as kernels of LibTorch do.
// "decoder", and the reference networks by their names, on small images.
// The same parameters and data at each call; LibTorch's generator is seeded by it. `device`: what the reference networks are made
// for, whose masks are no buffers that could be moved.
TestGraph MakeTestGraph(const std::string& name, c10::Device device = c10::kCPU);

// The graph without workspaces and with made-up times, as slow as copies are worth while: plans of it are the
// same on every processor. They are schedules of the graph itself, too, with peaks of its own.
Graph WithFixedCosts(const Graph& graph);

// All that a step leaves behind.
struct GraphOutcome {
  double loss = 0;
  std::string gradients;
  std::string buffers;
  RandomState random = RandomState::Capture();
};

class GraphTraining {
 protected:
  explicit GraphTraining(TestGraph graph,
                         const TrainingDevice& device = TrainingDeviceNamed("cpu"));
  explicit GraphTraining(const std::string& name,
                         const TrainingDevice& device = TrainingDeviceNamed("cpu"))
      : GraphTraining(MakeTestGraph(name, device.device), device) {}

  void Rewind();
  // So that nobody but the step holds them.
  std::vector<at::Tensor> Inputs() const;
  Bytes InputBytes() const;
  GraphOutcome Plain();
  Profile Profiled();
  // One step by the schedule, which must do as the evaluator says and as plain training does. `device` null: that of the
  // training.
  StepReport ExpectLikePlain(const Graph& graph, const Schedule& schedule,
                             const GraphOutcome& plain, ExecutionDevice* device = nullptr);

  // With the state as it is now.
  GraphOutcome After(double loss) const;

  const TrainingDevice& device_;
  MemoryMeter* const meter_;
  TestGraph graph_;
  BufferState buffers_;
  RandomState random_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_TORCH_TEST_GRAPHS_H_
