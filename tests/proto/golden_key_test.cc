// The keys of two profiles, literally. They were computed outside of this code base, from the
// description of the encoding in solvers/model/keys.md. A change of the encoding breaks this
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

TEST(GoldenKey, Dag) {
  EXPECT_EQ(KeyOf(SampleDagProfile(), KeyOptions()),
            "ffc9957700f5c49dce0f54e7162b52fd523b7906f23c48859a722e68eee8383f");
}

TEST(GoldenKey, Options) {
  KeyOptions options;
  options.tenant = "team-a";
  options.solver = "optimal_persistent";
  options.slots = 500;
  EXPECT_EQ(KeyOf(SampleChainProfile(), options),
            "7cdbdfe1272c1337965059a406a10997b8f8c7405db9ca018324bbef319d7d2c");
}

// The class of the link, where the device states none.
TEST(GoldenKey, Links) {
  const auto key = [](int64_t to_host, int64_t to_device) {
    v1::Profile profile = SampleChainProfile();
    profile.mutable_device()->clear_bandwidth_class();
    profile.mutable_device()->set_to_host_bytes_per_second(to_host);
    profile.mutable_device()->set_to_device_bytes_per_second(to_device);
    return KeyOf(profile, KeyOptions());
  };
  EXPECT_EQ(key(11000000000, 12000000000),
            "91eb4783d75f843891d468d8535de36bf60dd2684e97f5973a7abf9c7b5cd437");
  EXPECT_EQ(key(26000000000, 24000000000),
            "faa97bce19d0a1611d6cf00461189eea74b64bffb1a16cba9bcd618917580622");
  EXPECT_EQ(key(55000000000, 55000000000),
            "09f20fa07ace6d2df23ebf31bf7414c1d41d17453e91c1be58953d7421dace33");
  EXPECT_EQ(key(0, 12000000000),
            "fb279448a37f2f049d5155c2fcff0a8da2e6ac7e9308bd20b7e93c834a85f78d");
}

TEST(GoldenKey, RecomputeOnly) {
  KeyOptions options;
  options.recompute_only = true;
  EXPECT_EQ(KeyOf(SampleChainProfile(), options),
            "3249afdd664a5c59fe21eadd1ac178dc7bee6fba2beb440fa2a714a4cf48f0da");
}

}  // namespace
}  // namespace stowage
