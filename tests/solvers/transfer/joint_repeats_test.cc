// The joint solver on deep networks that repeat a few stages.
#include <gtest/gtest.h>

#include "solvers/zoo/networks.h"
#include "tests/solvers/transfer/each_alone.h"

namespace stowage::testing {
namespace {

TEST(JointRepeats, IsFasterThanEachAloneOnResNet152) {
  NetworkOptions options;
  options.name = "resnet152";
  options.batch = 32;
  options.image = 224;
  ExpectFasterThanEachAlone(options.name, *NetworkChain(options, ModelledV100()));
}

TEST(JointRepeats, IsFasterThanEachAloneOnADecoder) {
  DecoderOptions options;
  options.layers = 96;
  ExpectFasterThanEachAlone("decoder", *ChainOf(*MakeDecoder(options), ModelledV100()));
}

}  // namespace
}  // namespace stowage::testing
