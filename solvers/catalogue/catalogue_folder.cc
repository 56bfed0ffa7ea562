#include "solvers/catalogue/catalogue_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

namespace fs = std::filesystem;

absl::StatusOr<NetworkCatalogue> ReadFileAt(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.good() && !in.eof()) {
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path.string()));
  }
  absl::StatusOr<NetworkCatalogue> catalogue = ParseCatalogue(text);
  if (!catalogue.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), ": ", catalogue.status().message()));
  }
  if (catalogue->network != path.stem().string()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path.string(), " is of the network ", catalogue->network));
  }
  return catalogue;
}

}  // namespace

absl::StatusOr<std::vector<NetworkCatalogue>> ReadCatalogue(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == kCatalogueEnding) paths.push_back(entry.path());
  }
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the folder ", folder, ": ", error.message()));
  }
  if (paths.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no file *", kCatalogueEnding, " in ", folder));
  }
  std::sort(paths.begin(), paths.end());
  std::vector<NetworkCatalogue> networks;
  for (const fs::path& path : paths) {
    absl::StatusOr<NetworkCatalogue> network = ReadFileAt(path);
    if (!network.ok()) return network.status();
    networks.push_back(*std::move(network));
  }
  return networks;
}

CatalogueHit FindInCatalogue(const std::vector<NetworkCatalogue>& networks,
                             const NetworkOptions& wanted, const std::string& device, bool graph) {
  for (const NetworkCatalogue& network : networks) {
    if (network.network != wanted.name) continue;
    for (const CatalogueFrontier& frontier : network.frontiers) {
      const bool is_form = frontier.graph == graph && frontier.device == device;
      if (is_form && IsOfSize(frontier, wanted)) return {&network, &frontier};
    }
  }
  return {};
}

}  // namespace stowage
