#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/agent/plan_agreement.h"
#include "solvers/model/field_error.h"

namespace stowage {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::optional<std::string> ReadWhole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

class FolderAgreement : public PlanAgreement {
 public:
  explicit FolderAgreement(FolderAgreementOptions options) : options_(std::move(options)) {}

  int rank() const override { return options_.rank; }
  int ranks() const override { return options_.ranks; }

  absl::StatusOr<std::vector<std::string>> Gather(const std::string& mine) override {
    const Clock::time_point deadline = Clock::now() + options_.timeout;
    if (!Write(mine)) {
      return absl::UnavailableError(absl::StrCat("cannot write into ", options_.folder));
    }
    std::vector<std::string> all;
    for (int rank = 0; rank < options_.ranks; ++rank) {
      std::optional<std::string> said = WaitFor(rank, deadline);
      if (!said) {
        return absl::DeadlineExceededError(absl::StrCat("rank ", rank, " of ", options_.ranks,
                                                        " has not come to agreement ", round_,
                                                        " in ", options_.folder));
      }
      all.push_back(*std::move(said));
    }
    // All are in this round, so all have read the one before it.
    std::error_code ignored;
    if (round_ > 0) fs::remove(PathOf(round_ - 1, options_.rank), ignored);
    ++round_;
    return all;
  }

 private:
  fs::path PathOf(int64_t round, int rank) const {
    return fs::path(options_.folder) / absl::StrCat("plan-agreement-", round, "-", rank);
  }

  // Whole or not at all.
  bool Write(const std::string& mine) const {
    const fs::path path = PathOf(round_, options_.rank);
    const fs::path unfinished = absl::StrCat(path.string(), ".unfinished");
    std::ofstream out(unfinished, std::ios::binary);
    out << mine;
    out.close();
    std::error_code error;
    if (out) fs::rename(unfinished, path, error);
    return out && !error;
  }

  std::optional<std::string> WaitFor(int rank, Clock::time_point deadline) const {
    auto pause = std::chrono::microseconds(200);
    constexpr std::chrono::microseconds kLongest(20000);
    while (true) {
      if (std::optional<std::string> said = ReadWhole(PathOf(round_, rank))) return said;
      if (Clock::now() >= deadline) return std::nullopt;
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, kLongest);
    }
  }

  const FolderAgreementOptions options_;
  int64_t round_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PlanAgreement>> MakeFolderAgreement(FolderAgreementOptions options) {
  if (options.ranks < 1) return FieldError("ranks", options.ranks, "must be >= 1");
  if (options.rank < 0 || options.rank >= options.ranks) {
    return FieldError("rank", options.rank, absl::StrCat("must be in [0, ", options.ranks, ")"));
  }
  if (options.timeout.count() < 1)
    return FieldError("timeout", options.timeout.count(), "must be >= 1");
  std::error_code error;
  if (!fs::is_directory(options.folder, error)) {
    return absl::FailedPreconditionError(absl::StrCat(options.folder, " is no folder"));
  }
  const std::string own = absl::StrCat("-", options.rank);
  for (const fs::directory_entry& entry : fs::directory_iterator(options.folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind("plan-agreement-", 0) == 0 && name.size() > own.size() &&
        name.compare(name.size() - own.size(), own.size(), own) == 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          options.folder, " has ", name, " of an earlier start: each start takes a new folder"));
    }
  }
  return std::make_unique<FolderAgreement>(std::move(options));
}

}  // namespace stowage
