#include "client/rpc/replica_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace stowage {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

using Addresses = std::vector<std::string>;

// A name whose addresses a test decides. Shared with the thread that looks it up.
class Name {
 public:
  void StandsFor(absl::StatusOr<Addresses> addresses) {
    const std::lock_guard<std::mutex> lock(mutex_);
    addresses_ = std::move(addresses);
  }
  absl::StatusOr<Addresses> LookUp() {
    ++lookups;
    const std::lock_guard<std::mutex> lock(mutex_);
    return addresses_;
  }

  std::atomic<int> lookups{0};

 private:
  std::mutex mutex_;
  absl::StatusOr<Addresses> addresses_ = Addresses{"a:1"};
};

class ReplicaListTest : public testing::Test {
 protected:
  ReplicaList Make(ReplicaList::Clock::duration refresh) {
    return ReplicaList(
        "a name", [name = name_] { return name->LookUp(); }, refresh);
  }

  // Asks until the list is `wanted`: it is looked up behind the caller's back.
  static bool Becomes(ReplicaList* list, const Addresses& wanted) {
    for (int i = 0; i < 1000; ++i) {
      const auto addresses = list->Get(seconds(10), nullptr);
      if (addresses.ok() && **addresses == wanted) return true;
      std::this_thread::sleep_for(milliseconds(5));
    }
    return false;
  }

  const std::shared_ptr<Name> name_ = std::make_shared<Name>();
};

TEST_F(ReplicaListTest, IsSortedAndLookedUpOnceUntilItIsOld) {
  name_->StandsFor(Addresses{"b:1", "a:1"});
  ReplicaList list = Make(hours(1));
  const auto first = list.Get(seconds(10), nullptr);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_THAT(**first, ElementsAre("a:1", "b:1"));
  const auto second = list.Get(seconds(10), nullptr);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(*second, *first);
  EXPECT_EQ(name_->lookups, 1);
}

TEST_F(ReplicaListTest, FollowsTheNameAndIsTheSameObjectWhileNothingChanges) {
  name_->StandsFor(Addresses{"a:1", "b:1"});
  ReplicaList list = Make(milliseconds(0));
  const auto first = list.Get(seconds(10), nullptr);
  ASSERT_TRUE(first.ok()) << first.status();
  name_->StandsFor(Addresses{"b:1", "a:1"});  // as resolvers do
  while (name_->lookups < 5) EXPECT_EQ(*list.Get(seconds(10), nullptr), *first);
  name_->StandsFor(Addresses{"b:1", "c:1"});
  EXPECT_TRUE(Becomes(&list, {"b:1", "c:1"}));
}

TEST_F(ReplicaListTest, KeepsTheOldListWhileLookupsFail) {
  ReplicaList list = Make(milliseconds(0));
  ASSERT_TRUE(list.Get(seconds(10), nullptr).ok());
  name_->StandsFor(absl::UnavailableError("no resolver"));
  const int before = name_->lookups;
  while (name_->lookups < before + 5) {
    const auto addresses = list.Get(seconds(10), nullptr);
    ASSERT_TRUE(addresses.ok()) << addresses.status();
    EXPECT_THAT(**addresses, ElementsAre("a:1"));
  }
}

TEST_F(ReplicaListTest, WithoutAListTheReasonIsTheAnswerAndTheNextCallLooksAgain) {
  name_->StandsFor(absl::UnavailableError("cannot look up: unknown name"));
  ReplicaList list = Make(hours(1));
  const auto none = list.Get(seconds(10), nullptr);
  EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
  EXPECT_THAT(std::string(none.status().message()), HasSubstr("unknown name"));
  name_->StandsFor(Addresses{"a:1"});
  EXPECT_TRUE(Becomes(&list, {"a:1"}));
}

// The lookup outlives its list, too.
TEST_F(ReplicaListTest, ASlowResolverHoldsUpNoCallForLongerThanItsPatience) {
  std::promise<void> answers;
  const std::shared_future<void> answered = answers.get_future().share();
  const auto over = std::make_shared<std::promise<void>>();
  const auto token = std::make_shared<CancelToken>();
  {
    ReplicaList list(
        "a name",
        [answered, over]() -> absl::StatusOr<Addresses> {
          answered.wait();
          over->set_value();
          return Addresses{"a:1"};
        },
        hours(1));
    const auto none = list.Get(milliseconds(30), nullptr);
    EXPECT_TRUE(absl::IsUnavailable(none.status())) << none.status();
    EXPECT_THAT(std::string(none.status().message()),
                HasSubstr("a name was not looked up within 30 ms"));
    std::thread canceller([&token] {
      std::this_thread::sleep_for(milliseconds(30));
      token->Cancel();
    });
    EXPECT_TRUE(absl::IsCancelled(list.Get(hours(1), token.get()).status()));
    canceller.join();
  }
  answers.set_value();
  over->get_future().wait();
}

TEST_F(ReplicaListTest, CallsThatWaitShareALookup) {
  std::promise<void> answers;
  const std::shared_future<void> answered = answers.get_future().share();
  ReplicaList list(
      "a name",
      [answered, name = name_] {
        answered.wait();
        return name->LookUp();
      },
      hours(1));
  std::atomic<int> got{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] { got += list.Get(seconds(60), nullptr).ok() ? 1 : 0; });
  }
  std::this_thread::sleep_for(milliseconds(30));
  answers.set_value();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(got, 8);
  EXPECT_EQ(name_->lookups, 1);
}

}  // namespace
}  // namespace stowage
