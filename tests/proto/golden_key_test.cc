// The keys of two profiles, literally. They were computed outside of this code base, from the
// description of the encoding in solvers/model/canonical.h. A change of the encoding breaks this
// test: then it is a new version.
#include <gtest/gtest.h>

#include "proto/codec/codec.h"
#include "tests/proto/samples.h"

namespace stowage {
namespace {

std::string KeyOf(const v1::Profile& message, const KeyOptions& options) {
  const auto profile = FromProto(message);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return profile.ok() ? MakePlanKey(*profile, options).digest.ToHex() : "";
}

TEST(GoldenKey, Chain) {
  EXPECT_EQ(KeyOf(SampleChainProfile(), KeyOptions()),
            "0f68d1708ea9bb7dafc97a7cb06e55da493bee915eb32f0e0e313a4e80051f62");
}

TEST(GoldenKey, ChainWithSavedTensors) {
  EXPECT_EQ(KeyOf(SampleChainProfileWithSavedTensors(), KeyOptions()),
            "258ab033a01141cc4a6896dba5bc1dcd8ed5433a9868b1e84575ce14ef8862d7");
}

TEST(GoldenKey, Graph) {
  EXPECT_EQ(KeyOf(SampleGraphProfile(), KeyOptions()),
            "e0b2fc8804e9c3c3656fec345f710b98347feaec6b86ce1880e02dd7234e381e");
}

TEST(GoldenKey, Options) {
  KeyOptions options;
  options.tenant = "team-a";
  options.solver = "optimal_persistent";
  options.slots = 500;
  EXPECT_EQ(KeyOf(SampleChainProfile(), options),
            "7cdbdfe1272c1337965059a406a10997b8f8c7405db9ca018324bbef319d7d2c");
}

TEST(GoldenKey, RecomputeOnly) {
  KeyOptions options;
  options.recompute_only = true;
  EXPECT_EQ(KeyOf(SampleChainProfile(), options),
            "3249afdd664a5c59fe21eadd1ac178dc7bee6fba2beb440fa2a714a4cf48f0da");
}

}  // namespace
}  // namespace stowage
