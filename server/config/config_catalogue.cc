#include "server/config/config_catalogue.h"

#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "server/auth/file_watcher.h"
#include "server/config/config_checks.h"
#include "server/config/config_flags.h"
#include "solvers/zoo/catalogue.h"

namespace stowage {

absl::StatusOr<CatalogueConfig> CatalogueConfigFromFlags(const ConfigSources& sources) {
  const std::string folder = absl::GetFlag(FLAGS_catalogue);
  const std::string file = absl::GetFlag(FLAGS_catalogue_environments);
  if (folder.empty() && file.empty()) return CatalogueConfig();
  if (folder.empty())
    return FlagError(sources, "catalogue_environments", file, "needs --catalogue");
  const auto wrong_folder = [&](const absl::Status& status) {
    return FlagError(sources, "catalogue", folder, std::string(status.message()));
  };
  if (file.empty()) {
    return wrong_folder(absl::InvalidArgumentError(
        "needs --catalogue_environments: keys of jobs have devices and versions in them"));
  }
  absl::StatusOr<std::vector<NetworkCatalogue>> networks = ReadCatalogue(folder);
  if (!networks.ok()) return wrong_folder(networks.status());
  const absl::StatusOr<std::string> text = ReadSmallFile(file);
  auto environments = text.ok() ? ParseEnvironments(*text) : text.status();
  if (!environments.ok()) {
    return FlagError(sources, "catalogue_environments", file,
                     std::string(environments.status().message()));
  }
  return CatalogueConfig{*std::move(networks), *std::move(environments)};
}

}  // namespace stowage
