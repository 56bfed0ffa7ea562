// Which environments plans of a catalogue are for: what keys have beside the structure of the network.
//
// A text of one environment a line, NAME=VALUE with blanks between, values with blanks in quotes; a '#' at
// the start of a line begins a comment:
//
//   kind=a100 tenant=vision device="NVIDIA A100-SXM4-40GB" framework="libtorch 2.11.0"
//     math_settings="deterministic=0 ..." granularity=512                              (one line)
//
// device, framework, math_settings, granularity, bandwidth_class and duplex are those of the profiles of the
// jobs (`stowage catalogue environment` writes the line of a saved one); tenant is theirs, none if left out.
// Plans of a catalogue only recompute: they are those of devices without a link to host memory, and of jobs
// that ask for plans that copy nothing.
#ifndef STOWAGE_SERVER_CATALOGUE_ENVIRONMENT_FILE_H_
#define STOWAGE_SERVER_CATALOGUE_ENVIRONMENT_FILE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/device.h"

namespace stowage {

struct CatalogueEnvironment {
  std::string kind;  // of solvers/zoo/device_kinds.h: whose modelled times the plans are made for
  std::string tenant;
  Device device;
};

// INVALID_ARGUMENT that names the line: a name that is unknown, missing (kind, device) or comes twice, a kind
// that is not known, a device that ValidateDevice refuses. O(bytes).
absl::StatusOr<std::vector<CatalogueEnvironment>> ParseEnvironments(const std::string& text);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CATALOGUE_ENVIRONMENT_FILE_H_
