#include "client/cli/training_flags.h"

#include <ATen/Parallel.h>

#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/network_flags.h"
#include "client/cli/plan_flags.h"
#include "client/cli/say.h"
#include "client/cli/training_commands.h"
#include "client/rpc/server_flags.h"
#include "client/torch/tracking_allocator.h"
#include "solvers/model/field_error.h"

namespace stowage {

namespace {

// Before anything is allocated.
absl::Status Prepare() {
  TrackingAllocator::Install();
  const int threads = absl::GetFlag(FLAGS_threads);
  if (threads < 0) return FieldError("--threads", threads, "must be >= 0");
  if (threads > 0) at::set_num_threads(threads);
  return absl::OkStatus();
}

absl::StatusOr<Sample> SampleFromFlags() {
  const int64_t length = absl::GetFlag(FLAGS_length);
  const absl::StatusOr<DecoderOptions> decoder = NamedDecoder({absl::GetFlag(FLAGS_model)});
  if (decoder.ok()) {
    return MakeTokenSample(absl::GetFlag(FLAGS_batch), length, decoder->vocabulary,
                           absl::GetFlag(FLAGS_seed));
  }
  return MakeImageSample(absl::GetFlag(FLAGS_batch), absl::GetFlag(FLAGS_image_size),
                         absl::GetFlag(FLAGS_classes), absl::GetFlag(FLAGS_seed));
}

template <class Model>
absl::StatusOr<Workload> WithSample(absl::StatusOr<Model> model) {
  if (!model.ok()) return model.status();
  absl::StatusOr<Sample> sample = SampleFromFlags();
  if (!sample.ok()) return sample.status();
  return Workload{*std::move(model), *std::move(sample)};
}

}  // namespace

absl::StatusOr<Workload> WorkloadFromFlags() {
  const absl::Status status = Prepare();
  if (!status.ok()) return status;
  const std::string name = absl::GetFlag(FLAGS_model);
  const ModelOptions options = {absl::GetFlag(FLAGS_classes), absl::GetFlag(FLAGS_seed),
                                absl::GetFlag(FLAGS_image_size), absl::GetFlag(FLAGS_length)};
  return absl::GetFlag(FLAGS_graph) ? WithSample(MakeGraphModel(name, options))
                                    : WithSample(MakeModel(name, options));
}

std::unique_ptr<TrainedModel> TrainedModelOf(const Workload& workload) {
  return std::visit([](const auto& model) { return MakeTrainedModel(&model); }, workload.model);
}

absl::Status CheckRepeats() {
  const int repeats = absl::GetFlag(FLAGS_repeats);
  return repeats >= 1 ? absl::OkStatus() : FieldError("--repeats", repeats, "must be >= 1");
}

absl::StatusOr<AgentOptions> AgentOptionsFromFlags() {
  absl::Status status = CheckRepeats();
  if (status.ok()) status = CheckSolverFlag();
  if (!status.ok()) return status;
  const absl::StatusOr<CallOptions> call = CallOptionsFromFlags();
  if (!call.ok()) return call.status();
  AgentOptions options;
  options.server = ServerFromFlags();
  options.plan_timeout = absl::ToChronoMilliseconds(absl::GetFlag(FLAGS_timeout));
  options.profile.repeats = absl::GetFlag(FLAGS_repeats);
  options.plan.solver = absl::GetFlag(FLAGS_solver);
  options.plan.slots = absl::GetFlag(FLAGS_slots);
  // What a plan does is to be seen as it is, not mended.
  options.out_of_memory.tries = 0;
  options.drift.replans = 0;
  if (absl::GetFlag(FLAGS_arena)) options.arena = ArenaOptions();
  options.measure_steps = !absl::GetFlag(FLAGS_trace).empty();
  options.on_event = [](const AgentEvent& event) {
    const bool said = std::holds_alternative<FellBackEvent>(event) ||
                      std::holds_alternative<ArenaEvent>(event) ||
                      std::holds_alternative<OutOfMemoryEvent>(event);
    if (said) Say(ToString(event));
  };
  return options;
}

absl::StatusOr<std::optional<TransferModel>> LinkFromFlag() {
  constexpr Bytes kHostMemory(int64_t{1} << 40);
  const std::string text = absl::GetFlag(FLAGS_link);
  if (text.empty()) return std::nullopt;
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  double speed = 0;
  absl::Duration latency;
  const bool parsed = absl::SimpleAtod(parts[0], &speed) &&
                      (parts.size() == 1 || absl::ParseDuration(parts[1], &latency));
  if (!parsed || !(speed >= 1e-6 && speed <= 1e6) || latency < absl::ZeroDuration() ||
      latency > absl::Hours(1)) {
    return FieldError("--link", text,
                      "must be GB/s in [0.000001, 1000000], then \":\" and a "
                      "latency up to 1h or nothing, such as 12 or 12:10us");
  }
  const CopyCost cost{static_cast<int64_t>(speed * 1e9), Nanos(absl::ToInt64Nanoseconds(latency))};
  return TransferModel{cost, cost, /*full_duplex=*/true, kHostMemory};
}

absl::StatusOr<std::unique_ptr<SimulatedDevice>> DeviceWith(
    const std::optional<TransferModel>& link) {
  if (!link) return nullptr;
  return SimulatedDevice::Create(*link);
}

}  // namespace stowage
