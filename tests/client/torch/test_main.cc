#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "client/torch/memory/tracking_allocator.h"
#include "tests/client/device/training_devices.h"
#include "tests/client/torch/autocast.h"

namespace {

class AfterEachTest : public testing::EmptyTestEventListener {
  void OnTestEnd(const testing::TestInfo&) override {
    stowage::UseOneDnnAgain();
    stowage::FinishTrainingDevices();
  }
};

}  // namespace

int main(int argc, char** argv) {
  stowage::TrackingAllocator::Install();
  // One thread: what runs in parallel may reach another peak each time, and adds in another order.
  at::set_num_threads(1);
  testing::InitGoogleTest(&argc, argv);
  testing::UnitTest::GetInstance()->listeners().Append(new AfterEachTest);
  return RUN_ALL_TESTS();
}
