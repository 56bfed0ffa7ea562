// The flags that name a reference network and a batch for it.
#ifndef STOWAGE_CLIENT_CLI_NETWORK_FLAGS_H_
#define STOWAGE_CLIENT_CLI_NETWORK_FLAGS_H_

#include <cstdint>
#include <string>

#include "absl/flags/declare.h"

ABSL_DECLARE_FLAG(std::string, model);
ABSL_DECLARE_FLAG(int64_t, batch);
ABSL_DECLARE_FLAG(int64_t, image_size);
ABSL_DECLARE_FLAG(int64_t, classes);
ABSL_DECLARE_FLAG(int64_t, length);
ABSL_DECLARE_FLAG(bool, graph);

#endif  // STOWAGE_CLIENT_CLI_NETWORK_FLAGS_H_
