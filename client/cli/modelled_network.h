// A reference network at any batch size, with costs modelled on a kind of device.
#ifndef STOWAGE_CLIENT_CLI_MODELLED_NETWORK_H_
#define STOWAGE_CLIENT_CLI_MODELLED_NETWORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/batch/fit_batch.h"
#include "solvers/model/budget.h"
#include "solvers/schedule/frontier.h"
#include "solvers/schedule/plan.h"
#include "solvers/zoo/catalogue.h"
#include "solvers/zoo/device_kinds.h"
#include "solvers/zoo/networks.h"

namespace stowage {

// Its profiles are chains, made from shapes anew for every batch: none is told from others.
class ModelledNetwork final : public BatchSource {
 public:
  // The batch of `network` is not looked at.
  ModelledNetwork(NetworkOptions network, DeviceKind kind)
      : network_(std::move(network)), kind_(std::move(kind)) {}

  absl::StatusOr<Profile> At(int64_t batch_size) const override;
  bool Within(int64_t) const override { return true; }
  bool timeless() const override { return false; }
  std::vector<int64_t> Suggested() const override { return {}; }

  // What it keeps whatever the batch. Errors: those of MakeNetwork.
  absl::StatusOr<ModelBytes> ModelSize() const;

 private:
  NetworkOptions network_;
  DeviceKind kind_;
};

// The plan that a frontier of a network's catalogue has for a budget, validated if it is FOUND. Errors: those of PlanAt and of the
// evaluator.
absl::StatusOr<Plan> ValidatedPlanAt(const NetworkCatalogue& network, const Frontier& frontier,
                                     const Problem& problem, Bytes budget);

// The plan of a catalogue for a profile of the same structure on that kind of device, whose costs it has (FrontierFor):
// validated, or PROVEN_INFEASIBLE; nothing where the catalogue has none, or can neither fit nor prove. Without a kind
// ("") for a profile without times alone, to which any plan that fits is as good as another: under times of its own
// those for modelled ones are second best. Errors: those of FrontierFor and FrontierOn.
absl::StatusOr<std::optional<Plan>> PlanFromCatalogue(const std::vector<NetworkCatalogue>& networks,
                                                      const std::string& device,
                                                      const Profile& profile, Bytes budget);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_MODELLED_NETWORK_H_
