// Times of a device that runs behind the host, by clocks of both that the tests hold.
#include "client/torch/offload/queued_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace stowage {
namespace {

using testing::ElementsAre;

// Host and compute, each with its own time.
struct Machine {
  int64_t host = 0;
  int64_t compute = 0;
  int64_t opens = 0;  // when what is queued may begin; 0: at once
  bool closed = false;
  int closings = 0;
  int waits = 0;
  std::vector<int64_t> marks;
  struct Queued {
    int64_t given, takes;
    int mark;
  };
  std::vector<Queued> queued;

  // The host takes `gives` to queue work that takes compute `takes`.
  void Op(int64_t gives, int64_t takes) {
    host += gives;
    queued.push_back({host, takes, -1});
    if (closed && host > opens) closed = false;
    if (!closed) Run();
  }
  void Run() {
    for (const Queued& work : queued) {
      if (work.mark >= 0) {
        marks[static_cast<size_t>(work.mark)] = std::max({compute, work.given, opens});
        compute = marks[static_cast<size_t>(work.mark)];
        continue;
      }
      compute = std::max({compute, work.given, opens}) + work.takes;
    }
    queued.clear();
  }
  // As .item() does.
  void HostWaits() {
    if (closed) host = opens;
    closed = false;
    Run();
    host = std::max(host, compute);
  }
};

class FakeQueue final : public ComputeQueue {
 public:
  explicit FakeQueue(Machine* machine) : machine_(machine) {}

  void Mark(size_t mark) override {
    if (mark >= machine_->marks.size()) machine_->marks.resize(mark + 1);
    machine_->queued.push_back({machine_->host, 0, static_cast<int>(mark)});
    if (!machine_->closed) machine_->Run();
  }
  bool Passed(size_t mark) override {
    return machine_->queued.empty() && machine_->marks[mark] <= machine_->host;
  }
  void Wait(size_t /*mark*/) override {
    ++machine_->waits;
    machine_->HostWaits();
  }
  Nanos Between(size_t start, size_t stop) override {
    return Nanos(machine_->marks[stop] - machine_->marks[start]);
  }
  void Close(Nanos most) override {
    ++machine_->closings;
    machine_->closed = true;
    machine_->opens = machine_->host + most.value();
  }
  bool Open() override {
    const bool was = machine_->closed;
    if (was) machine_->opens = machine_->host;
    machine_->closed = false;
    machine_->Run();
    return was;
  }

 private:
  Machine* const machine_;
};

class QueuedTimerTest : public testing::Test {
 protected:
  Machine machine_;
  const std::unique_ptr<StageTimer> timer_ =
      MakeQueuedTimer(std::make_unique<FakeQueue>(&machine_));
};

TEST_F(QueuedTimerTest, ShortWorkTakesWhatComputeTakes) {
  for (int pass = 0; pass < 3; ++pass) {
    for (int stage = 0; stage < 2; ++stage) {
      timer_->StartQueued();
      for (int op = 0; op < 10; ++op) machine_.Op(/*gives=*/5000, /*takes=*/1000 * (stage + 1));
      timer_->Stop();
    }
    EXPECT_THAT(timer_->Collect(), ElementsAre(Nanos(10000), Nanos(20000)));
  }
}

// The host's latency is part of a whole step, as it is of those that are planned.
TEST_F(QueuedTimerTest, AnIntervalThatIsNotQueuedHasTheHostsLatency) {
  timer_->Start();
  for (int op = 0; op < 10; ++op) machine_.Op(5000, 1000);
  timer_->Stop();
  EXPECT_THAT(timer_->Collect(), ElementsAre(Nanos(51000)));
  EXPECT_EQ(machine_.closings, 0);
}

TEST_F(QueuedTimerTest, WhatAlwaysWaitsForComputeIsNotHeldBackForGood) {
  for (int pass = 0; pass < 5; ++pass) {
    timer_->StartQueued();
    machine_.Op(5000, 1000);
    machine_.HostWaits();
    timer_->Stop();
    timer_->StartQueued();
    machine_.Op(5000, 1000);
    timer_->Stop();
    EXPECT_EQ(timer_->Collect()[1], Nanos(1000));
  }
  EXPECT_EQ(machine_.closings, 2 + 5);
}

// It takes workspaces, say.
TEST_F(QueuedTimerTest, WhatWaitsInTheFirstPassAloneIsHeldBackInTheOthers) {
  for (int pass = 0; pass < 5; ++pass) {
    timer_->StartQueued();
    machine_.Op(5000, 1000);
    if (pass == 0) machine_.HostWaits();
    machine_.Op(5000, 1000);
    timer_->Stop();
    const Nanos time = timer_->Collect()[0];
    if (pass > 0) {
      EXPECT_EQ(time, Nanos(2000));
    }
  }
  EXPECT_EQ(machine_.closings, 5);
}

TEST_F(QueuedTimerTest, AStartWithoutAStopIsForgottenAndHoldsNothingBack) {
  timer_->StartQueued();
  machine_.Op(5000, 1000);
  EXPECT_TRUE(timer_->Collect().empty());
  EXPECT_FALSE(machine_.closed);
  timer_->StartQueued();
  timer_->Start();
  EXPECT_FALSE(machine_.closed);
  machine_.Op(5000, 1000);
  timer_->Stop();
  EXPECT_THAT(timer_->Collect(), ElementsAre(Nanos(5000)));
}

// The host comes by again when compute has passed the marks.
TEST_F(QueuedTimerTest, WhatHasPassedIsCollectedWithoutWaiting) {
  EXPECT_TRUE(timer_->Passed());  // there is nothing to be passed
  for (int step = 0; step < 3; ++step) {
    timer_->Start();
    machine_.Op(/*gives=*/1000, /*takes=*/50000);
    timer_->Stop();
    EXPECT_FALSE(timer_->Passed());
    machine_.host += 60000;
    EXPECT_TRUE(timer_->Passed());
    EXPECT_THAT(timer_->Collect(), ElementsAre(Nanos(51000)));
    EXPECT_TRUE(timer_->Passed());
  }
  EXPECT_EQ(machine_.waits, 0);
}

TEST_F(QueuedTimerTest, OneWaitIsEnoughForAllThatHasPassedByThen) {
  for (int interval = 0; interval < 3; ++interval) {
    timer_->Start();
    machine_.Op(1000, 50000);
    timer_->Stop();
  }
  EXPECT_FALSE(timer_->Passed());
  EXPECT_EQ(timer_->Collect().size(), 3U);
  EXPECT_EQ(machine_.waits, 1);
}

// As CUDA calls functions of the host: later, on a thread that is not the caller's.
class CallingQueue final : public GatedQueue {
 public:
  ~CallingQueue() override {
    if (compute_.joinable()) compute_.join();
  }
  void Mark(size_t) override {}
  bool Passed(size_t) override { return true; }
  void Wait(size_t) override {}
  Nanos Between(size_t, size_t) override { return Nanos(0); }

  void WaitForCalls() { compute_.join(); }
  bool fails = false;

 private:
  void Call(void (*function)(void*), void* argument) override {
    if (fails) throw std::runtime_error("there is no room in the queue");
    compute_ = std::thread(function, argument);
  }

  std::thread compute_;
};

TEST(GatedQueueTest, WhatIsClosedWaitsUntilItOpens) {
  CallingQueue queue;
  queue.Close(Nanos(int64_t{60} * 1000 * 1000 * 1000));
  EXPECT_TRUE(queue.Open());
  queue.WaitForCalls();  // at once
  queue.Close(Nanos(0));
  queue.WaitForCalls();  // nobody opened it
  EXPECT_FALSE(queue.Open());
}

// The call may come when the queue is gone; a gate that was not queued is nobody's.
TEST(GatedQueueTest, AGateOutlivesItsQueueAndIsGoneWhereItWasNotQueued) {
  std::function<void()> later;
  class Late final : public GatedQueue {
   public:
    explicit Late(std::function<void()>* later) : later_(later) {}
    void Mark(size_t) override {}
    bool Passed(size_t) override { return true; }
    void Wait(size_t) override {}
    Nanos Between(size_t, size_t) override { return Nanos(0); }

   private:
    void Call(void (*function)(void*), void* argument) override {
      *later_ = [function, argument] { function(argument); };
    }
    std::function<void()>* const later_;
  };
  {
    Late queue(&later);
    queue.Close(Nanos(0));
  }
  later();
  CallingQueue refusing;
  refusing.fails = true;
  EXPECT_THROW(refusing.Close(Nanos(0)), std::runtime_error);
}

TEST(QueueGateTest, TellsWhetherItWasPassedBeforeItOpened) {
  QueueGate late(Nanos(0));
  late.Wait();
  EXPECT_FALSE(late.Open());
  QueueGate open(Nanos(int64_t{60} * 1000 * 1000 * 1000));
  EXPECT_TRUE(open.Open());
  open.Wait();  // at once
  EXPECT_FALSE(open.Open());
}

}  // namespace
}  // namespace stowage
