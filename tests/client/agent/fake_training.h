// A model that only pretends to train, on a device as large as a test says, and a service that keeps
// plans: what an agent does is seen without waiting for it.
#ifndef STOWAGE_TESTS_CLIENT_AGENT_FAKE_TRAINING_H_
#define STOWAGE_TESTS_CLIENT_AGENT_FAKE_TRAINING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client/agent/batch.h"
#include "client/agent/trained_model.h"
#include "client/rpc/plan_connection.h"
#include "client/torch/memory/memory_meter.h"
#include "client/torch/model/model_tensors.h"

namespace stowage {

class FakeMeter : public MemoryMeter {
 public:
  Bytes current() const override { return Bytes(0); }
  Bytes peak() const override { return highest; }
  void ResetPeak() override { highest = Bytes(0); }

  Bytes highest;
};

// The world that the model trains in; it outlives the model.
struct FakeWorld {
  FakeMeter meter;
  Bytes room{int64_t{1} << 40};
  std::optional<size_t> failed_at;  // the instruction for which there was none, if steps tell
  Bytes host_room{int64_t{1} << 40};
  bool immovable = false;     // what its steps hold
  bool communicates = false;  // may
  double slower = 1;          // steps than predicted
  double larger = 1;
  bool measure_fails = false;
  std::function<void(ChainSpec*)> costs;  // other times than FakeProfile's
  bool tells_shapes = false;              // of structure, without measuring
  bool shapes_are_off = false;

  std::vector<CostSource> measured;  // each Measure
  int told_shapes = 0;
  int planned_steps = 0;
  int plain_steps = 0;
  const MemoryMeter* plain_meter = nullptr;  // of the latest
};

struct FakeTensors : ModelTensors {
  FakeTensors();
};

// A chain of eight stages whose bytes grow with the batch.
Profile FakeProfile(const Batch& batch, CostSource costs);

class FakeModel : public TrainedModel {
 public:
  explicit FakeModel(FakeWorld* world) : world_(world) {}

  const ModelTensors& tensors() const override { return tensors_; }
  bool may_communicate() const override { return world_->communicates; }
  Device DeviceOf(const ExecutionDevice* device) const override;
  absl::StatusOr<Profile> FromShapes(const Batch& batch, const StepMeters& meters) const override;
  absl::StatusOr<Profile> Measure(const Batch& batch, const ProfileOptions& options) const override;
  absl::StatusOr<StepReport> PlainStep(Batch batch, const StepMeters& meters) const override;
  absl::StatusOr<std::vector<at::Tensor>> PlainForward(Batch batch) const override;
  absl::StatusOr<std::unique_ptr<PlannedStep>> Prepare(const Problem& problem,
                                                       const Schedule& schedule, const Batch& batch,
                                                       ExecutionDevice* device) const override;

 private:
  FakeWorld* const world_;
  FakeTensors tensors_;
};

// Of n samples.
Batch FakeBatch(int64_t n);

// What a service keeps; its connections do not outlive it. Ranks on threads of their own may ask at once.
struct FakeService {
  std::unique_ptr<PlanConnection> Connect();

  std::mutex answering;
  std::map<PlanKey, std::vector<Plan>> kept;
  std::vector<ExecutionMeasurement> reports;
  absl::Status report_status;
  bool profile_wanted = false;  // until one comes
  int looked_up = 0;
  int computed = 0;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_AGENT_FAKE_TRAINING_H_
