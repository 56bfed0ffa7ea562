#include "client/models/models.h"

#include <torch/torch.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/models/resnet.h"
#include "client/torch/model_state.h"
#include "client/torch/torch_status.h"

namespace stowage {
namespace {

// Draws from a seeded generator and then gives the caller its random state back.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : guard_({}) { torch::manual_seed(seed); }

 private:
  StateGuard guard_;
};

}  // namespace

const std::vector<std::string>& ModelNames() {
  static const auto* const names = new std::vector<std::string>(ResNetNames());
  return *names;
}

absl::StatusOr<ChainModel> MakeModel(const std::string& name, const ModelOptions& options) {
  if (options.classes < 1) {
    return absl::InvalidArgumentError(absl::StrCat("classes must be >= 1, not ", options.classes));
  }
  try {
    const SeededRandom random(options.seed);
    absl::StatusOr<ChainModel> model = MakeResNet(name, options.classes);
    if (absl::IsNotFound(model.status())) {
      return absl::InvalidArgumentError(absl::StrCat("there is no model '", name, "'; there are ",
                                                     absl::StrJoin(ModelNames(), ", ")));
    }
    return model;
  } catch (...) {
    return CurrentExceptionToStatus(name, absl::StatusCode::kInternal);
  }
}

absl::StatusOr<Sample> MakeImageSample(int64_t batch, int64_t side, int64_t classes,
                                       uint64_t seed) {
  if (batch < 1 || side < 1 || classes < 1) {
    return absl::InvalidArgumentError(absl::StrCat("batch, side and classes must be >= 1, not ",
                                                   batch, ", ", side, " and ", classes));
  }
  try {
    const SeededRandom random(seed);
    Sample sample;
    sample.input = torch::randn({batch, 3, side, side});
    sample.target = torch::randint(classes, {batch}, torch::kLong);
    return sample;
  } catch (...) {
    return CurrentExceptionToStatus("making a sample", absl::StatusCode::kInternal);
  }
}

}  // namespace stowage
