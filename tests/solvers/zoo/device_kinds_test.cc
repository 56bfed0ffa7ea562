#include "solvers/zoo/device_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "solvers/model/transfer_model.h"
#include "solvers/zoo/networks.h"
#include "solvers/zoo/roofline.h"

namespace stowage {
namespace {

TEST(DeviceKinds, AllAreModelsWithMemoryAndALink) {
  std::set<std::string> names;
  for (const DeviceKind& kind : AllDeviceKinds()) {
    SCOPED_TRACE(kind.name);
    EXPECT_TRUE(names.insert(kind.name).second);
    EXPECT_TRUE(ValidateDeviceModel(kind.model).ok());
    EXPECT_GE(kind.model.memory, Bytes(int64_t{16} << 30));
    const Device device = DescribeKind(kind);
    EXPECT_TRUE(ValidateDevice(device).ok()) << ValidateDevice(device);
    EXPECT_EQ(device.model.rfind("modelled ", 0), 0u);
    ASSERT_TRUE(TransfersOf(device).has_value());
    EXPECT_TRUE(TransfersOf(device)->full_duplex);
    EXPECT_EQ(FindDeviceKind(kind.name)->description, kind.description);
  }
  EXPECT_EQ(FindDeviceKind("v100")->model.name, ModelledV100().name);
  const auto none = FindDeviceKind("abacus");
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(none.status().message()), testing::HasSubstr("a100, a100_80gb"));
}

// More of everything is never slower.
TEST(DeviceKinds, NewerOnesOfAFamilyAreFaster) {
  const auto step = [](const std::string& kind) {
    return NetworkChain({"resnet50", 224, 32, 1000}, FindDeviceKind(kind)->model)->ideal_time();
  };
  EXPECT_LT(step("v100"), step("t4"));
  EXPECT_LT(step("a100"), step("v100"));
  EXPECT_LT(step("a100_80gb"), step("a100"));
  EXPECT_LT(step("h100"), step("a100_80gb"));
  EXPECT_LT(step("h200"), step("h100"));
  EXPECT_LT(step("t4"), step("cpu"));
}

// The counts that are known of these networks: 25.56 and 138.36 million parameters.
TEST(NetworkBytes, CountParametersAndStatistics) {
  const auto bytes = [](const char* name) {
    return BytesOfModel(*MakeNetwork({name, 224, 1, 1000}));
  };
  EXPECT_EQ(bytes("resnet50").parameters, Bytes(int64_t{4} * 25'557'032));
  EXPECT_EQ(bytes("resnet50").buffers, Bytes(int64_t{4} * 53'120));
  EXPECT_EQ(bytes("vgg16").parameters, Bytes(int64_t{4} * 138'357'544));
  EXPECT_EQ(bytes("vgg16").buffers, Bytes(0));
  EXPECT_EQ(bytes("vgg16").trained, bytes("vgg16").parameters);
}

}  // namespace
}  // namespace stowage
