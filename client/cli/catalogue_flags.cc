#include "client/cli/catalogue_flags.h"

#include <filesystem>
#include <system_error>

#include "absl/flags/flag.h"
#include "solvers/zoo/catalogue.h"

ABSL_FLAG(std::string, catalogue, "",
          "folder of plans that were solved beforehand; empty: the one installed with the command, "
          "if there is one (the sources have it in solvers/zoo/data); \"none\" for none");

namespace stowage {

namespace fs = std::filesystem;

std::string CatalogueFolder() {
  const std::string flag = absl::GetFlag(FLAGS_catalogue);
  if (!flag.empty()) return flag == "none" ? "" : flag;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path folder = program.parent_path().parent_path() / "share/stowage/catalogue";
  return !error && fs::is_directory(folder, error) ? folder.string() : "";
}

absl::StatusOr<std::vector<NetworkCatalogue>> CatalogueFromFlag() {
  const std::string folder = CatalogueFolder();
  return folder.empty() ? std::vector<NetworkCatalogue>() : ReadCatalogue(folder);
}

}  // namespace stowage
