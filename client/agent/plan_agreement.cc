#include "client/agent/plan_agreement.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace stowage {
namespace {

const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace

absl::StatusOr<std::string> PlanAgreement::Broadcast(const std::string& mine) {
  absl::StatusOr<std::vector<std::string>> all = Gather(rank() == 0 ? mine : "");
  if (!all.ok()) return all.status();
  return std::move(all->front());
}

absl::StatusOr<std::vector<int64_t>> PlanAgreement::Greatest(const std::vector<int64_t>& mine) {
  const absl::StatusOr<std::vector<std::string>> all = Gather(absl::StrJoin(mine, ","));
  if (!all.ok()) return all.status();
  std::vector<int64_t> greatest = mine;
  for (size_t rank = 0; rank < all->size(); ++rank) {
    const std::vector<std::string> said = absl::StrSplit((*all)[rank], ',', absl::SkipEmpty());
    bool numbers = said.size() == mine.size();
    for (size_t i = 0; numbers && i < said.size(); ++i) {
      int64_t value = 0;
      numbers = absl::SimpleAtoi(said[i], &value);
      greatest[i] = std::max(greatest[i], value);
    }
    if (numbers) continue;
    return absl::InternalError(
        absl::StrCat("rank ", rank, " says other than ", mine.size(), " numbers"));
  }
  return greatest;
}

absl::Status PlanAgreement::Say(uint32_t) {
  return absl::UnimplementedError("no words go round beside the steps here");
}

absl::StatusOr<uint32_t> PlanAgreement::Hear() { return Say(0); }

template <class Exchange>
auto FinalAgreement::Tried(const Exchange& exchange) -> decltype(exchange()) {
  if (!status_.ok()) return status_;
  auto result = exchange();
  status_ = StatusOf(result);
  return result;
}

absl::StatusOr<std::vector<std::string>> FinalAgreement::Gather(const std::string& mine) {
  return Tried([&] { return inner_->Gather(mine); });
}

absl::StatusOr<std::string> FinalAgreement::Broadcast(const std::string& mine) {
  return Tried([&] { return inner_->Broadcast(mine); });
}

absl::StatusOr<std::vector<int64_t>> FinalAgreement::Greatest(const std::vector<int64_t>& mine) {
  return Tried([&] { return inner_->Greatest(mine); });
}

absl::Status FinalAgreement::Say(uint32_t word) {
  return Tried([&] { return inner_->Say(word); });
}

absl::StatusOr<uint32_t> FinalAgreement::Hear() {
  return Tried([&] { return inner_->Hear(); });
}

}  // namespace stowage
