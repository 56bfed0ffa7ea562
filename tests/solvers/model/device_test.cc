#include "solvers/model/device.h"

#include <gtest/gtest.h>

#include "solvers/model/field_error.h"

namespace stowage {
namespace {

TEST(Device, DefaultsAreValid) { EXPECT_TRUE(ValidateDevice(Device()).ok()); }

TEST(Device, NamesTheFieldThatIsWrong) {
  const auto field_of = [](const Device& device) {
    const auto violation = GetFieldViolation(ValidateDevice(device));
    return violation ? violation->field : "";
  };
  Device d;
  d.model = std::string(257, 'x');
  EXPECT_EQ(field_of(d), "device.model");
  d = Device();
  d.math_settings = std::string(1025, 'x');
  EXPECT_EQ(field_of(d), "device.math_settings");
  d = Device();
  d.host_memory = Bytes(-1);
  EXPECT_EQ(field_of(d), "device.host_memory_bytes");
  d = Device();
  d.to_device_bytes_per_second = -1;
  EXPECT_EQ(field_of(d), "device.to_device_bytes_per_second");
  for (const int bad : {-1, 64}) {
    d = Device();
    d.bandwidth_class = bad;
    EXPECT_EQ(field_of(d), "device.bandwidth_class");
  }
}

}  // namespace
}  // namespace stowage
