#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/agent/board_agreement.h"
#include "client/agent/plan_agreement.h"

namespace stowage {
namespace {

namespace fs = std::filesystem;

// One file per text.
class FolderBoard : public AgreementBoard {
 public:
  explicit FolderBoard(std::string folder) : folder_(std::move(folder)) {}

  std::string where() const override { return folder_.string(); }

  absl::Status Put(const std::string& name, const std::string& text) override {
    const fs::path path = folder_ / name;
    const fs::path unfinished = absl::StrCat(path.string(), ".unfinished");
    std::ofstream out(unfinished, std::ios::binary);
    out << text;
    out.close();
    std::error_code error;
    if (out) fs::rename(unfinished, path, error);
    if (out && !error) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat("cannot write into ", where()));
  }

  absl::StatusOr<std::optional<std::string>> Get(const std::string& name) override {
    std::ifstream in(folder_ / name, std::ios::binary);
    if (!in) return std::nullopt;
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  void Remove(const std::string& name) override {
    std::error_code ignored;
    fs::remove(folder_ / name, ignored);
  }

 private:
  const fs::path folder_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<PlanAgreement>> MakeFolderAgreement(FolderAgreementOptions options) {
  const RankOptions ranks{options.rank, options.ranks, options.timeout};
  const absl::Status status = CheckRankOptions(ranks);
  if (!status.ok()) return status;
  std::error_code error;
  if (!fs::is_directory(options.folder, error)) {
    return absl::FailedPreconditionError(absl::StrCat(options.folder, " is no folder"));
  }
  const std::string own = absl::StrCat("-", options.rank);
  for (const fs::directory_entry& entry : fs::directory_iterator(options.folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(kAgreementPrefix, 0) == 0 && name.size() > own.size() &&
        name.compare(name.size() - own.size(), own.size(), own) == 0) {
      return absl::FailedPreconditionError(absl::StrCat(
          options.folder, " has ", name, " of an earlier start: each start takes a new folder"));
    }
  }
  return MakeBoardAgreement(std::make_unique<FolderBoard>(std::move(options.folder)), ranks);
}

}  // namespace stowage
