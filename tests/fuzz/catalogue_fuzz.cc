// Arbitrary text as a file of a catalogue, and as environments that one is for: refused, or a catalogue that is
// written as the same text, and devices that profiles may have.
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/catalogue/environment_file.h"
#include "solvers/model/digest.h"
#include "solvers/zoo/catalogue.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

void CheckCatalogue(const std::string& text) {
  const absl::StatusOr<NetworkCatalogue> catalogue = ParseCatalogue(text);
  if (!catalogue.ok()) {
    Require(absl::IsInvalidArgument(catalogue.status()), "bad text is a bad argument");
    return;
  }
  const std::string written = FormatCatalogue(*catalogue);
  Require(written == text, "a catalogue has one text", written);
  for (const CatalogueFrontier& frontier : catalogue->frontiers) {
    Require(frontier.schedules.size() <= kMostCataloguePoints, "few points");
    for (const size_t index : frontier.schedules) {
      Require(index < catalogue->schedules.size(), "schedules that are there");
    }
  }
}

void CheckEnvironments(const std::string& text) {
  const auto environments = ParseEnvironments(text);
  if (!environments.ok()) {
    Require(absl::IsInvalidArgument(environments.status()) &&
                absl::StartsWith(environments.status().message(), "line "),
            "the error names the line", environments.status().ToString());
    return;
  }
  for (const CatalogueEnvironment& environment : *environments) {
    Require(ValidateDevice(environment.device).ok(), "a valid device");
    Require(!environment.device.model.empty(), "a device with a name");
  }
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  stowage::CheckCatalogue(text);
  // Sealed, so that what is behind the seal is tried, too.
  stowage::CheckCatalogue(absl::StrCat(text, "sha256 ", stowage::Sha256(text).ToHex(), "\n"));
  stowage::CheckEnvironments(text);
  return 0;
}
