// A reference network with random data to train on, as a chain or as a graph: what the programs here
// measure, plan for and train, plain and by plans.
#ifndef STOWAGE_TESTS_BENCH_TORCH_TRAINED_NETWORK_H_
#define STOWAGE_TESTS_BENCH_TORCH_TRAINED_NETWORK_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/models/models.h"
#include "client/torch/execute/step_report.h"
#include "client/torch/offload/execution_device.h"
#include "client/torch/profile/chain_profiler.h"
#include "solvers/model/problem.h"
#include "solvers/schedule/measured_step.h"
#include "solvers/schedule/schedule.h"
#include "solvers/zoo/networks.h"

namespace stowage {

inline constexpr char kDecoder[] = "decoder";
// Its head's weight is the embedding's.
inline constexpr char kTiedDecoder[] = "decoder_tied";

// ModelNames() and the two decoders.
std::vector<std::string> TrainedNames();

struct NetworkChoice {
  std::string name;   // one of TrainedNames()
  int64_t image = 0;  // pixels on a side; 0: as few as train well
  int64_t batch = 2;
  int64_t classes = 10;
  // Of decoders; the batch is the one above.
  DecoderOptions decoder = SmallDecoder();

  static DecoderOptions SmallDecoder();
};

enum class Form { kChain, kGraph };
const char* ToString(Form form);

using Step = std::function<absl::StatusOr<StepReport>()>;

// Not thread-safe. Nothing here throws but what LibTorch throws while a model is made.
class TrainedNetwork {
 public:
  // On the device, null: the CPU, whose memory the installed allocator counts. INVALID_ARGUMENT as MakeNetwork and MakeDecoder
  // have it. Equal choices make equal networks and data, on any device.
  static absl::StatusOr<std::unique_ptr<TrainedNetwork>> Make(const NetworkChoice& choice,
                                                              Form form,
                                                              ExecutionDevice* device = nullptr);

  const Network& described() const { return described_; }
  const ModelTensors& tensors() const;
  Bytes parameter_bytes() const;

  // Errors of all below: those of client/torch. Steps do not wait for the device, by whose clock their time is.
  absl::StatusOr<Profile> Measure(const ProfileOptions& asked) const;
  absl::StatusOr<StepReport> Plain() const;
  // Steps by the schedule, on a device with a link or, null, on the network's own; each leaves in `measured`, unless
  // it is null, what its instructions took. This, the device and `measured` must outlive them.
  absl::StatusOr<Step> Planned(const Problem& problem, const Schedule& schedule,
                               ExecutionDevice* device = nullptr,
                               Later<MeasuredStep>* measured = nullptr) const;

  // As a caller's own loop trains on the CPU: a forward, of a PlannedModule where there is a schedule, the loss, and its backward.
  // Reports have the time alone.
  absl::StatusOr<StepReport> PlainLoop() const;
  absl::StatusOr<Step> PlannedLoop(const Problem& problem, const Schedule& schedule) const;

 private:
  TrainedNetwork(Network described, ExecutionDevice* device)
      : described_(std::move(described)), device_(device) {}

  const Network described_;
  ExecutionDevice* const device_;
  std::optional<ChainModel> chain_;  // one of the two
  std::optional<GraphModel> graph_;
  Sample sample_;
};

// A pass whose times count, after one that does not.
ProfileOptions OnePass();

// How many parameters that are trained have a gradient of zeros only, or none.
int ParametersWithoutGradient(const ModelTensors& model);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TORCH_TRAINED_NETWORK_H_
