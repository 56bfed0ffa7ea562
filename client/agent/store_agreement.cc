#include "client/agent/store_agreement.h"

#include <cstdint>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/torch/base/torch_status.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

class StoreBoard : public AgreementBoard {
 public:
  StoreBoard(c10::intrusive_ptr<c10d::Store> store, std::string prefix)
      : store_(std::move(store)), prefix_(std::move(prefix)) {}

  std::string where() const override { return absl::StrCat("the job's store, below ", prefix_); }

  absl::Status Put(const std::string& name, const std::string& text) override {
    try {
      store_->set(prefix_ + name, std::vector<uint8_t>(text.begin(), text.end()));
      return absl::OkStatus();
    } catch (...) {
      return Failed();
    }
  }

  absl::StatusOr<std::optional<std::string>> Get(const std::string& name) override {
    try {
      if (!store_->check({prefix_ + name})) return std::nullopt;
      const std::vector<uint8_t> bytes = store_->get(prefix_ + name);
      return std::string(bytes.begin(), bytes.end());
    } catch (...) {
      return Failed();
    }
  }

  void Remove(const std::string& name) override {
    try {
      store_->deleteKey(prefix_ + name);
    } catch (const std::exception&) {
      // Not all stores can.
    }
  }

  // How often this rank has, this time among them.
  absl::StatusOr<int64_t> Join(int rank) {
    try {
      return store_->add(absl::StrCat(prefix_, "joined-", rank), 1);
    } catch (...) {
      return Failed();
    }
  }

 private:
  absl::Status Failed() const {
    return CurrentExceptionToStatus(where(), absl::StatusCode::kUnavailable);
  }

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::string prefix_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PlanAgreement>> MakeStoreAgreement(
    c10::intrusive_ptr<c10d::Store> store, const RankOptions& options, const std::string& prefix) {
  const absl::Status status = CheckRankOptions(options);
  if (!status.ok()) return status;
  if (!store) return FieldError("store", "null", "must be a store");
  auto board = std::make_unique<StoreBoard>(std::move(store), prefix);
  const absl::StatusOr<int64_t> joined = board->Join(options.rank);
  if (!joined.ok()) return joined.status();
  if (*joined > 1) {
    return absl::FailedPreconditionError(absl::StrCat("rank ", options.rank, " has joined in ",
                                                      board->where(),
                                                      " already: each start takes a new prefix"));
  }
  return MakeBoardAgreement(std::move(board), options);
}

}  // namespace stowage
