// How much device memory a plan may use.
#ifndef STOWAGE_SOLVERS_MODEL_BUDGET_H_
#define STOWAGE_SOLVERS_MODEL_BUDGET_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/units.h"

namespace stowage {

// floor(share * peak of store-all), share in (0, 1].
struct ShareOfStoreAll {
  double share = 1.0;
};

// That share of this peak, rounded down.
Bytes ShareOf(const ShareOfStoreAll& share, Bytes store_all_peak);

// The least budget that any schedule of the solver's class fits.
struct LeastBudget {};

using Budget = std::variant<Bytes, ShareOfStoreAll, LeastBudget>;

// OK, or INVALID_ARGUMENT made by FieldError with names below "budget.".
absl::Status ValidateBudget(const Budget& budget);

// "8GiB", "1500000000", "512 MiB", "60%", "least". INVALID_ARGUMENT naming the text and the forms
// otherwise.
absl::StatusOr<Budget> ParseBudget(const std::string& text);

std::string ToString(const Budget& budget);

// From the memory of a device to what a plan may use of it: everything else that a training job keeps
// there is subtracted, line by line, for people to check.
//
// A plan's budget covers activations (the batch's input among them), their gradients, saved tensors and
// workspaces; nothing else.

// By what an optimizer keeps for every byte that it trains.
enum class OptimizerKind {
  kSgd,       // nothing
  kMomentum,  // once the bytes: stochastic gradient descent with momentum, RMSprop, Adagrad
  kAdam,      // twice: Adam, AdamW
};

struct DeviceLimit {
  Bytes memory;  // of the device, what this process may use
  OptimizerKind optimizer = OptimizerKind::kSgd;
  // Instead of the estimate for its kind: a sharded one, say, or one with copies in another type.
  std::optional<Bytes> optimizer_state;
  Bytes buckets;  // in which gradients are sent to other ranks
  Bytes other;    // whatever else is the job's: batches that wait, tensors beside the model
  // Of the memory, too: the framework's context, and what the allocator cannot hand out. In [0, 1).
  double reserve = 0.05;
};

// OK, or INVALID_ARGUMENT made by FieldError with names below `field`, such as "device_limit".
absl::Status CheckDeviceLimit(const std::string& field, const DeviceLimit& limit);

// What a model keeps on the device whatever the batch.
struct ModelBytes {
  Bytes parameters;
  Bytes trained;    // the part of the parameters that has gradients
  Bytes allocated;  // of these gradients
  Bytes tied;       // the part of `trained` that several parts of the model use
  Bytes buffers;
};

struct DeviceBudget {
  struct Item {
    std::string what;
    Bytes bytes;
    bool reserve = false;  // DeviceLimit::reserve
  };
  Bytes device;
  std::vector<Item> subtracted;  // all of them, zeros too
  Bytes activations;             // what is left; positive
};

// INVALID_ARGUMENT made by FieldError, with names below `field`: CheckDeviceLimit, or nothing is left; the rule
// then names the item that does not fit any more. Gradients count whether they are allocated already or not.
absl::StatusOr<DeviceBudget> SubtractFrom(const std::string& field, const DeviceLimit& limit,
                                          const ModelBytes& model);

// One line per item, the sum below.
std::string ToString(const DeviceBudget& budget);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_BUDGET_H_
