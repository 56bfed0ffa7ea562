// ResNets as modules written by hand after torchvision's sources.
#ifndef STOWAGE_TESTS_CLIENT_MODELS_WRITTEN_RESNET_H_
#define STOWAGE_TESTS_CLIENT_MODELS_WRITTEN_RESNET_H_

#include <cstdint>
#include <string>

#include "client/torch/model/chain_model.h"

namespace stowage {

// "resnet18", 34, 50, 101 or 152.
ChainModel WrittenResNet(const std::string& name, int64_t classes);

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_MODELS_WRITTEN_RESNET_H_
