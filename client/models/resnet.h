// ResNet-18, 34, 50, 101 and 152 as torchvision has them (the stride of a bottleneck in its 3x3
// convolution).
#ifndef STOWAGE_CLIENT_MODELS_RESNET_H_
#define STOWAGE_CLIENT_MODELS_RESNET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/torch/chain_model.h"

namespace stowage {

// "resnet18" to "resnet152".
std::vector<std::string> ResNetNames();

// Stages: conv1, bn1relu, maxpool, one per block, head (average pool, flatten, linear). Parameters
// are drawn from LibTorch's default generator. NOT_FOUND: no such name. Throws what LibTorch
// throws.
absl::StatusOr<ChainModel> MakeResNet(const std::string& name, int64_t classes);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_MODELS_RESNET_H_
