#include "client/cli/network_flags.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, model, "resnet50",
          "reference network, such as resnet18 or resnet50; a wrong name lists them all");
ABSL_FLAG(int64_t, batch, 4, "images or sequences per step");
ABSL_FLAG(int64_t, image_size, 224, "height and width of the images");
ABSL_FLAG(int64_t, classes, 1000, "classes of the network's head");
ABSL_FLAG(int64_t, length, 1024, "tokens of a sequence, for decoders such as gpt2");
ABSL_FLAG(bool, graph, false, "the network as a graph, op by op, not as a chain of stages");
