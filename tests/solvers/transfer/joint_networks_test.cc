// The joint solver on networks whose stages differ. Those that repeat theirs are in
// joint_repeats_test.cc.
#include <gtest/gtest.h>

#include "solvers/zoo/networks.h"
#include "tests/solvers/transfer/each_alone.h"

namespace stowage::testing {
namespace {

class JointNetworks : public ::testing::TestWithParam<const char*> {};

TEST_P(JointNetworks, IsFasterThanEachAlone) {
  NetworkOptions options;
  options.name = GetParam();
  options.batch = 32;
  options.image = options.name == "inception_v3" ? 299 : 224;
  ExpectFasterThanEachAlone(GetParam(), *NetworkChain(options, ModelledV100()));
}

INSTANTIATE_TEST_SUITE_P(All, JointNetworks,
                         ::testing::Values("densenet121", "vgg16", "inception_v3"));

}  // namespace
}  // namespace stowage::testing
