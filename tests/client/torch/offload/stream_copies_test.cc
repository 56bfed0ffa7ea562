// What StreamCopies does between streams, on those of the test device.
#include "client/torch/offload/stream_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/client/device/test_device.h"

namespace stowage {
namespace {

using testing::ElementsAre;

class StreamCopiesTest : public testing::Test {
 protected:
  // Of two pieces, which note that they ran. They give compute time to run before them, if it does not wait.
  StreamCopies Copies(bool second_fails = false) {
    return StreamCopies(device_->device(),
                        [this, second_fails](const CopyPiece& piece, Stream, c10::Stream stream) {
                          streams_.push_back(stream.id());
                          if (second_fails && piece.bytes == 2)
                            throw std::runtime_error("the second piece");
                          TestDevice::QueueOf(stream).Add([this] {
                            for (int i = 0; i < 1000 && !computed_; ++i) std::this_thread::yield();
                            Note("copy");
                          });
                        });
  }

  void Compute(const std::string& what) {
    TestDevice::compute().Add([this, what] {
      Note(what);
      computed_ = what == "after";
    });
  }

  void Note(const std::string& what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    order_.push_back(what);
  }

  std::vector<std::string> Order() {
    TestDevice::Synchronize();
    const std::lock_guard<std::mutex> lock(mutex_);
    return order_;
  }

  static std::vector<CopyPiece> Pieces() { return {{nullptr, nullptr, 1}, {nullptr, nullptr, 2}}; }

  const std::unique_ptr<TestDevice> device_ = TestDevice::Create().value();
  std::vector<c10::StreamId> streams_;
  std::atomic<bool> computed_{false};
  std::mutex mutex_;
  std::vector<std::string> order_;
};

TEST_F(StreamCopiesTest, ACopySeesWhatComputeDidAndComputeSeesTheCopy) {
  StreamCopies copies = Copies();
  TestDevice::compute().Hold();
  Compute("before");
  const auto copy = copies.Start(Stream::kToHost, Pieces());
  copy->Wait();
  Compute("after");
  EXPECT_THAT(Order(), ElementsAre("before", "copy", "copy", "after"));
}

TEST_F(StreamCopiesTest, NobodyOverwritesTheEndsOfACopyThatIsGivenUp) {
  StreamCopies copies = Copies();
  copies.Start(Stream::kToDevice, Pieces()).reset();
  Compute("after");
  EXPECT_THAT(Order(), ElementsAre("copy", "copy", "after"));
}

TEST_F(StreamCopiesTest, OfOneThatFailsInTheMiddleWhatIsOnItsWayIsWaitedFor) {
  StreamCopies copies = Copies(/*second_fails=*/true);
  EXPECT_THROW(copies.Start(Stream::kToHost, Pieces()), std::runtime_error);
  Compute("after");
  EXPECT_THAT(Order(), ElementsAre("copy", "after"));
}

TEST_F(StreamCopiesTest, DirectionsShareAStreamOnceTheyAreToldTo) {
  const auto both = [this](StreamCopies* copies) {
    for (const Stream direction : {Stream::kToHost, Stream::kToDevice}) {
      copies->Start(direction, {{nullptr, nullptr, 1}})->Wait();
    }
    return std::exchange(streams_, {});
  };
  StreamCopies copies = Copies();
  const std::vector<c10::StreamId> apart = both(&copies);
  EXPECT_NE(apart[0], apart[1]);
  copies.ShareOneStream();
  EXPECT_THAT(both(&copies), ElementsAre(apart[0], apart[0]));
  EXPECT_NE(apart[0], 0);
  TestDevice::Synchronize();
}

TEST_F(StreamCopiesTest, NothingIsOnItsStreamsWhenItIsGone) {
  {
    StreamCopies copies = Copies();
    copies.Start(Stream::kToHost, Pieces()).reset();
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  EXPECT_THAT(order_, ElementsAre("copy", "copy"));
}

}  // namespace
}  // namespace stowage
