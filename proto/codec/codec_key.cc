#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "proto/codec/enum_map.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr size_t kMaxSolverName = 256;

constexpr EnumMap<v1::Objective, Objective, 2> kObjectives{{
    {v1::OBJECTIVE_LEAST_TIME, Objective::kLeastTime},
    {v1::OBJECTIVE_UNSPECIFIED, Objective::kLeastTime},
}};

absl::StatusOr<Budget> ReadBudget(const v1::Budget& message) {
  switch (message.amount_case()) {
    case v1::Budget::kBytes:
      return Budget(Bytes(message.bytes()));
    case v1::Budget::kShareOfStoreAll:
      return Budget(ShareOfStoreAll{message.share_of_store_all()});
    case v1::Budget::kLeast:
      if (message.least()) return Budget(LeastBudget{});
      return FieldError("budget.least", "false", "must be true when it is set");
    case v1::Budget::AMOUNT_NOT_SET:
      break;
  }
  return FieldError("budget", "unset",
                    "exactly one of bytes, share_of_store_all and least must be set");
}

}  // namespace

v1::Budget ToProto(const Budget& budget) {
  v1::Budget message;
  if (const Bytes* bytes = std::get_if<Bytes>(&budget)) {
    message.set_bytes(bytes->value());
  } else if (const auto* share = std::get_if<ShareOfStoreAll>(&budget)) {
    message.set_share_of_store_all(share->share);
  } else {
    message.set_least(true);
  }
  return message;
}

absl::StatusOr<Budget> FromProto(const v1::Budget& message) {
  absl::StatusOr<Budget> budget = ReadBudget(message);
  if (!budget.ok()) return budget;
  const absl::Status status = ValidateBudget(*budget);
  if (!status.ok()) return status;
  return budget;
}

v1::PlanKey ToProto(const PlanKey& key) {
  v1::PlanKey message;
  message.set_encoding_version(key.encoding_version);
  message.set_digest(key.digest.ToBinary());
  return message;
}

absl::StatusOr<PlanKey> FromProto(const v1::PlanKey& message) {
  // A version other than ours is no error: such a key is one that nothing is stored under.
  if (message.encoding_version() < 1) {
    return FieldError("key.encoding_version", message.encoding_version(), "must be >= 1");
  }
  const absl::StatusOr<Digest> digest = DigestFromProto("key.digest", message.digest());
  if (!digest.ok()) return digest.status();
  return PlanKey{message.encoding_version(), *digest};
}

absl::StatusOr<Digest> DigestFromProto(const std::string& field, const std::string& bytes) {
  if (bytes.size() != Digest::kSize) {
    return FieldError(field, absl::StrCat(bytes.size(), " bytes"),
                      absl::StrCat("must have ", Digest::kSize, " bytes"));
  }
  std::array<uint8_t, Digest::kSize> copied{};
  std::copy(bytes.begin(), bytes.end(), copied.begin());
  return Digest(copied);
}

absl::StatusOr<KeyOptions> FromProto(const v1::PlanOptions& message, const std::string& tenant) {
  KeyOptions options;
  options.tenant = tenant;
  const absl::Status status =
      FromWire(kObjectives, "options.objective", message.objective(), &options.objective);
  if (!status.ok()) return status;
  options.solver = message.solver();
  if (options.solver.size() > kMaxSolverName) {
    return FieldError(
        "options.solver", absl::StrCat(options.solver.substr(0, 32), "..."),
        absl::StrCat("must have at most ", kMaxSolverName, " bytes, has ", options.solver.size()));
  }
  options.slots = message.slots();
  if (options.slots < 0 || options.slots > kSlotLimit) {
    return FieldError("options.slots", options.slots,
                      absl::StrCat("must be in [0, ", kSlotLimit, "]"));
  }
  options.recompute_only = message.recompute_only();
  return options;
}

v1::PlanOptions ToProto(const KeyOptions& options) {
  v1::PlanOptions message;
  message.set_objective(ToWire(kObjectives, options.objective));
  message.set_solver(options.solver);
  message.set_slots(options.slots);
  message.set_recompute_only(options.recompute_only);
  return message;
}

}  // namespace stowage
