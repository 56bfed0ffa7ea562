#include "client/agent/board_agreement.h"

#include <algorithm>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {

const char kAgreementPrefix[] = "plan-agreement-";

namespace {

using Clock = std::chrono::steady_clock;

class BoardAgreement : public PlanAgreement {
 public:
  BoardAgreement(std::unique_ptr<AgreementBoard> board, const RankOptions& options)
      : board_(std::move(board)), options_(options) {}

  int rank() const override { return options_.rank; }
  int ranks() const override { return options_.ranks; }

  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
    const Clock::time_point deadline = Clock::now() + options_.timeout;
    const absl::Status put = board_->Put(NameOf(round_, options_.rank), mine);
    if (!put.ok()) return put;
    std::vector<std::string> all;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      absl::StatusOr<std::string> said = WaitFor(rank, deadline);
      if (!said.ok()) return said.status();
      all.push_back(*std::move(said));
    }
    // All are in this round, so all have read the one before it.
    if (round_ > 0) board_->Remove(NameOf(round_ - 1, options_.rank));
    ++round_;
    return all;
  }

 private:
  static std::string NameOf(int64_t round, int rank) {
    return absl::StrCat(kAgreementPrefix, round, "-", rank);
  }

  absl::StatusOr<std::string> WaitFor(int rank, Clock::time_point deadline) {
    auto pause = std::chrono::microseconds(200);
    constexpr std::chrono::microseconds kLongest(20000);
    while (true) {
      absl::StatusOr<std::optional<std::string>> said = board_->Get(NameOf(round_, rank));
      if (!said.ok()) return said.status();
      if (*said) return **std::move(said);
      if (Clock::now() >= deadline) {
        return absl::DeadlineExceededError(absl::StrCat("rank ", rank, " of ", options_.ranks,
                                                        " has not come to agreement ", round_,
                                                        " in ", board_->where()));
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongest);
    }
  }

  const std::unique_ptr<AgreementBoard> board_;
  const RankOptions options_;
  int64_t round_ = 0;
};

}  // namespace

absl::Status CheckRankOptions(const RankOptions& options) {
  if (options.ranks < 1) return FieldError("ranks", options.ranks, "must be >= 1");
  if (options.rank < 0 || options.rank >= options.ranks) {
    return FieldError("rank", options.rank, absl::StrCat("must be in [0, ", options.ranks, ")"));
  }
  if (options.timeout.count() < 1) {
    return FieldError("timeout", options.timeout.count(), "must be >= 1");
  }
  return absl::OkStatus();
}

std::unique_ptr<PlanAgreement> MakeBoardAgreement(std::unique_ptr<AgreementBoard> board,
                                                  const RankOptions& options) {
  return std::make_unique<BoardAgreement>(std::move(board), options);
}

}  // namespace stowage
