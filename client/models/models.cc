#include "client/models/models.h"

#include <torch/torch.h>

#include <initializer_list>

#include "client/models/network_model.h"
#include "client/models/seeded_random.h"
#include "client/torch/base/torch_status.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

NetworkModelOptions ModelOn(c10::Device device) {
  NetworkModelOptions model;
  model.device = device;
  return model;
}

// `make` is ChainModelOf or GraphModelOf.
template <class Model>
absl::StatusOr<Model> Train(Model (*make)(const Network&, const NetworkModelOptions&),
                            const absl::StatusOr<Network>& network,
                            const NetworkModelOptions& options, uint64_t seed) {
  if (!network.ok()) return network.status();
  try {
    const SeededRandom random(seed);
    return make(*network, options);
  } catch (...) {
    return CurrentExceptionToStatus(network->name, absl::StatusCode::kInternal);
  }
}

absl::StatusOr<Network> NetworkFor(const std::string& name, const ModelOptions& options) {
  NetworkOptions network;
  network.name = name;
  network.image = options.image;
  network.classes = options.classes;
  network.length = options.length;
  return MakeNetwork(network);
}

struct Size {
  const char* name;
  int64_t value;
};

absl::Status CheckSizes(std::initializer_list<Size> sizes) {
  for (const Size& size : sizes) {
    if (size.value < 1) return FieldError(size.name, size.value, "must be >= 1");
  }
  return absl::OkStatus();
}

// The input's tensor is made by `make`; classes are drawn for every row of `rows`.
template <class MakeInput>
absl::StatusOr<Sample> Draw(const MakeInput& make, const std::vector<int64_t>& rows,
                            int64_t classes, uint64_t seed, c10::Device device) {
  try {
    const SeededRandom random(seed);
    Sample sample;
    sample.input = make().to(device);
    sample.target = torch::randint(classes, rows, torch::kLong).to(device);
    return sample;
  } catch (...) {
    return CurrentExceptionToStatus("making a sample", absl::StatusCode::kInternal);
  }
}

}  // namespace

const std::vector<std::string>& ModelNames() {
  static const auto* const names = [] {
    auto* made = new std::vector<std::string>();
    for (const NetworkInfo& network : AllNetworks()) made->push_back(network.name);
    return made;
  }();
  return *names;
}

absl::StatusOr<ChainModel> MakeModel(const std::string& name, const ModelOptions& options) {
  return Train(ChainModelOf, NetworkFor(name, options), ModelOn(options.device), options.seed);
}

absl::StatusOr<GraphModel> MakeGraphModel(const std::string& name, const ModelOptions& options) {
  return Train(GraphModelOf, NetworkFor(name, options), ModelOn(options.device), options.seed);
}

absl::StatusOr<ChainModel> MakeDecoderModel(const DecoderOptions& options, bool tied_embedding,
                                            uint64_t seed, c10::Device device) {
  NetworkModelOptions model = ModelOn(device);
  model.tied_embedding = tied_embedding;
  return Train(ChainModelOf, MakeDecoder(options), model, seed);
}

absl::StatusOr<Sample> MakeImageSample(int64_t batch, int64_t side, int64_t classes, uint64_t seed,
                                       c10::Device device) {
  const absl::Status sizes =
      CheckSizes({{"batch", batch}, {"image_size", side}, {"classes", classes}});
  if (!sizes.ok()) return sizes;
  const auto make = [&] { return torch::randn({batch, 3, side, side}); };
  return Draw(make, {batch}, classes, seed, device);
}

absl::StatusOr<Sample> MakeTokenSample(int64_t batch, int64_t length, int64_t vocabulary,
                                       uint64_t seed, c10::Device device) {
  const absl::Status sizes =
      CheckSizes({{"batch", batch}, {"length", length}, {"vocabulary", vocabulary}});
  if (!sizes.ok()) return sizes;
  const auto make = [&] { return torch::randint(vocabulary, {batch, length}, torch::kLong); };
  return Draw(make, {batch, length}, vocabulary, seed, device);
}

}  // namespace stowage
