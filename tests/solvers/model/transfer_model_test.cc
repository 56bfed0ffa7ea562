#include "solvers/model/transfer_model.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "solvers/model/field_error.h"

namespace stowage {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

Device Linked() {
  Device device;
  device.to_host_bytes_per_second = 11;
  device.to_device_bytes_per_second = 12;
  device.to_host_latency = Nanos(3);
  device.to_device_latency = Nanos(4);
  device.host_memory = Bytes(5);
  return device;
}

TEST(TransferModel, IsWhatTheDeviceSays) {
  const std::optional<TransferModel> transfers = TransfersOf(Linked());
  ASSERT_TRUE(transfers);
  EXPECT_TRUE(ValidateTransferModel(*transfers).ok());
  EXPECT_EQ(transfers->to_host.bytes_per_second, 11);
  EXPECT_EQ(transfers->to_device.bytes_per_second, 12);
  EXPECT_EQ(transfers->to_host.latency, Nanos(3));
  EXPECT_EQ(transfers->to_device.latency, Nanos(4));
  EXPECT_EQ(transfers->host_memory, Bytes(5));
  EXPECT_FALSE(transfers->full_duplex);
}

int32_t ClassAt(int64_t to_host, int64_t to_device) {
  Device device = Linked();
  device.to_host_bytes_per_second = to_host;
  device.to_device_bytes_per_second = to_device;
  return BandwidthClassOf(*TransfersOf(device));
}

TEST(TransferModel, ClassesAreFactorsOfTwoOfTheSlowerDirection) {
  constexpr int64_t kGiga = 1000000000;
  EXPECT_EQ(ClassAt(12 * kGiga, 12 * kGiga), 128);
  EXPECT_EQ(ClassAt(12 * kGiga, 24 * kGiga), 128);
  EXPECT_EQ(ClassAt(50 * kGiga, 24 * kGiga), 129);
  EXPECT_EQ(ClassAt(48 * kGiga, 50 * kGiga), 130);
  EXPECT_EQ(ClassAt(3 * kGiga, 3 * kGiga), 126);
  EXPECT_EQ(ClassAt(16970562748, kMost), 128);
  EXPECT_EQ(ClassAt(16970562749, kMost), 129);
  // Beyond those that a device states, at both ends.
  EXPECT_EQ(ClassAt(1, 1), 95);
  EXPECT_EQ(ClassAt(kMost, kMost), 158);
}

TEST(TransferModel, JitterOfALinkStaysInItsClass) {
  for (const int64_t lanes : {12, 24, 48}) {
    for (const int64_t percent : {80, 90, 95, 105, 110, 120}) {
      const int64_t speed = lanes * 10000000 * percent;
      EXPECT_EQ(ClassAt(speed, speed), ClassAt(lanes * 1000000000, lanes * 1000000000));
    }
  }
}

TEST(TransferModel, DuplexIsFullOnlyIfTheDeviceSaysSo) {
  Device device = Linked();
  device.duplex = Duplex::kHalf;
  EXPECT_FALSE(TransfersOf(device)->full_duplex);
  device.duplex = Duplex::kFull;
  EXPECT_TRUE(TransfersOf(device)->full_duplex);
}

TEST(TransferModel, IsAbsentWithoutALinkOrHostMemory) {
  EXPECT_FALSE(TransfersOf(Device()));
  Device device = Linked();
  device.to_host_bytes_per_second = 0;
  EXPECT_FALSE(TransfersOf(device));
  device = Linked();
  device.to_device_bytes_per_second = 0;
  EXPECT_FALSE(TransfersOf(device));
  device = Linked();
  device.host_memory = Bytes(0);
  EXPECT_FALSE(TransfersOf(device));
}

TEST(TransferModel, NamesTheFieldThatIsWrong) {
  const auto field_of = [](const TransferModel& transfers) {
    const auto violation = GetFieldViolation(ValidateTransferModel(transfers));
    return violation ? violation->field : "";
  };
  const TransferModel good = *TransfersOf(Linked());
  for (const int64_t bad : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
    TransferModel t = good;
    t.to_host.bytes_per_second = bad;
    EXPECT_EQ(field_of(t), "transfers.to_host.bytes_per_second");
    t = good;
    t.to_device.bytes_per_second = bad;
    EXPECT_EQ(field_of(t), "transfers.to_device.bytes_per_second");
  }
  TransferModel t = good;
  t.to_host.latency = Nanos(-1);
  EXPECT_EQ(field_of(t), "transfers.to_host.latency_ns");
  t = good;
  t.to_device.latency = Nanos(-1);
  EXPECT_EQ(field_of(t), "transfers.to_device.latency_ns");
  t = good;
  t.host_memory = Bytes(-1);
  EXPECT_EQ(field_of(t), "transfers.host_memory_bytes");
  t = good;
  t.host_memory = Bytes(0);
  EXPECT_EQ(field_of(t), "");
}

TEST(TransferModel, CopiesTakeLatencyAndBytesOverBandwidthRoundedUp) {
  const int64_t second = 1000000000;
  EXPECT_EQ(CopyTime({second, Nanos(0)}, Bytes(7)), Nanos(7));
  EXPECT_EQ(CopyTime({second, Nanos(5)}, Bytes(7)), Nanos(12));
  EXPECT_EQ(CopyTime({2 * second, Nanos(0)}, Bytes(7)), Nanos(4));
  EXPECT_EQ(CopyTime({2 * second, Nanos(0)}, Bytes(8)), Nanos(4));
  EXPECT_EQ(CopyTime({3, Nanos(1)}, Bytes(1)), Nanos(333333335));
  EXPECT_EQ(CopyTime({3, Nanos(9)}, Bytes(0)), Nanos(9));
  EXPECT_EQ(CopyTime({kMost, Nanos(0)}, Bytes(0)), Nanos(0));
  EXPECT_EQ(CopyTime({kMost, Nanos(0)}, Bytes(1)), Nanos(1));
}

TEST(TransferModel, TimesThatOverflowStopAtTheMost) {
  EXPECT_EQ(CopyTime({1, Nanos(0)}, Bytes(kMost)), Nanos(kMaxTotal));
  EXPECT_EQ(CopyTime({1, Nanos(kMost)}, Bytes(kMost)), Nanos(kMaxTotal));
  EXPECT_EQ(CopyTime({kMost, Nanos(kMost)}, Bytes(0)), Nanos(kMaxTotal));
  EXPECT_EQ(CopyTime({kMost, Nanos(0)}, Bytes(kMost)), Nanos(1000000000));
}

}  // namespace
}  // namespace stowage
