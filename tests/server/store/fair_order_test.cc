#include "server/store/fair_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/support/failing_allocations.h"

namespace stowage::testing {
namespace {

using Order = FairOrder<std::string, int>;

Order::Place Add(Order* order, const std::string& owner, int64_t charge, int item) {
  return order->Add(Order::PreparedItem(owner, Bytes(charge), item));
}

// All items, in the order in which they go.
std::vector<int> Emptied(Order* order) {
  std::vector<int> items;
  while (order->held() > Bytes(0)) {
    items.push_back(*order->Next());
    order->Remove(order->Next());
  }
  return items;
}

TEST(FairOrder, OfOneOwnerTheLeastRecentlyUsedGoesFirst) {
  Order order;
  Add(&order, "a", 5, 1);
  const auto second = Add(&order, "a", 7, 2);
  const auto third = Add(&order, "a", 1, 3);
  Add(&order, "a", 9, 4);
  order.Touch(second);
  order.Remove(third);
  EXPECT_EQ(order.held(), Bytes(21));
  EXPECT_EQ(Emptied(&order), (std::vector<int>{1, 4, 2}));
}

TEST(FairOrder, TheOldestOfWhoHoldsMostGoesNext) {
  Order order;
  Add(&order, "much", 4, 10);
  Add(&order, "little", 5, 20);
  Add(&order, "much", 4, 11);
  Add(&order, "much", 4, 12);
  EXPECT_EQ(Emptied(&order), (std::vector<int>{10, 11, 20, 12}));
}

TEST(FairOrder, OfOwnersThatHoldTheSameWhoseSumChangedLastComesLast) {
  Order order;
  const auto of_a = Add(&order, "a", 6, 1);
  Add(&order, "b", 6, 2);
  order.Touch(of_a);
  EXPECT_EQ(*order.Next(), 1);
  const auto more = Add(&order, "a", 1, 3);
  order.Remove(more);
  EXPECT_EQ(*order.Next(), 2);
}

TEST(FairOrder, WhatWasJustAddedGoesOnlyWhereNoOtherOwnerHoldsMore) {
  Order order;
  Add(&order, "a", 6, 1);
  const auto as_much = Add(&order, "b", 6, 2);
  EXPECT_EQ(*order.Next(), 1);
  order.Remove(as_much);
  Add(&order, "b", 7, 3);
  EXPECT_EQ(*order.Next(), 3);
  Add(&order, "b", 7, 4);
  EXPECT_EQ(*order.Next(), 3);
}

// "a" has given some up since "b" came: of equals, whose sum changed last comes last.
TEST(FairOrder, WhatWasJustAddedMayGoWhereAnotherOwnerHoldsAsMuch) {
  Order order;
  Add(&order, "a", 3, 1);
  Add(&order, "a", 7, 2);
  Add(&order, "b", 7, 3);
  EXPECT_EQ(*order.Next(), 1);
  order.Remove(order.Next());
  EXPECT_EQ(*order.Next(), 3);
}

TEST(FairOrder, NothingButWhatIsMadeAllocates) {
  const std::string owner(100, 'o'), other(100, 'p');
  Order order;
  const auto first = Add(&order, owner, 3, 1);
  Order::PreparedItem second(owner, Bytes(4), 2), third(other, Bytes(5), 3);
  std::optional<Order::Place> added;
  EXPECT_FALSE(RunsOut(0, [&] {
    order.Add(std::move(second));
    added = order.Add(std::move(third));
    order.Touch(first);
    order.Remove(order.Next());
  }));
  EXPECT_EQ(order.held(), Bytes(8));
  EXPECT_FALSE(RunsOut(0, [&] { order.Remove(*added); }));
  EXPECT_EQ(Emptied(&order), (std::vector<int>{1}));
}

TEST(FairOrder, WhatCouldNotBeMadeIsNotThere) {
  const std::string owner(100, 'o');
  Order order;
  Add(&order, owner, 3, 1);
  bool ran_out = true;
  int after = 0;
  for (; ran_out; ++after) {
    const Bytes before = order.held();
    ran_out = RunsOut(after, [&] { Add(&order, owner + "2", 1, 2); });
    EXPECT_EQ(order.held(), before + Bytes(ran_out ? 0 : 1));
  }
  EXPECT_GT(after, 1);
  EXPECT_EQ(Emptied(&order), (std::vector<int>{1, 2}));
}

// The same by going over everything.
class PlainFairOrder {
 public:
  struct Item {
    std::string owner;
    int64_t charge;
    int id;
  };

  void Add(const Item& item) {
    items_.push_back(item);
    changed_[item.owner] = ++changes_;
  }
  Item Remove(size_t at) {
    const Item item = items_[at];
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(at));
    changed_[item.owner] = ++changes_;
    return item;
  }
  void Touch(size_t at) {
    std::rotate(items_.begin() + static_cast<std::ptrdiff_t>(at),
                items_.begin() + static_cast<std::ptrdiff_t>(at) + 1, items_.end());
  }
  size_t Next() const {
    std::string most;
    const std::map<std::string, int64_t> sums = Sums();
    for (const auto& [owner, sum] : sums) {
      const bool first = most.empty() || sum > sums.at(most) ||
                         (sum == sums.at(most) && changed_.at(owner) < changed_.at(most));
      if (first) most = owner;
    }
    size_t at = 0;
    while (items_[at].owner != most) ++at;
    return at;
  }
  // Of those that hold something.
  std::map<std::string, int64_t> Sums() const {
    std::map<std::string, int64_t> sums;
    for (const Item& item : items_) sums[item.owner] += item.charge;
    return sums;
  }
  int64_t held() const {
    int64_t held = 0;
    for (const Item& item : items_) held += item.charge;
    return held;
  }
  const std::vector<Item>& items() const { return items_; }

 private:
  std::vector<Item> items_;  // the least recently used first
  std::map<std::string, int64_t> changed_;
  int64_t changes_ = 0;
};

// Whatever is added, used and removed: what goes is what the plain order says, and an owner that
// holds at most its share loses nothing by what others add.
TEST(FairOrder, AnOwnerWithinItsShareLosesNothingByOthers) {
  constexpr int64_t kCapacity = 100;
  std::mt19937 random(7);
  const auto below = [&](size_t limit) { return random() % limit; };
  Order order;
  PlainFairOrder plain;
  std::map<int, Order::Place> places;
  int went = 0, went_at_once = 0, kept_within = 0;
  for (int id = 0; id < 20000; ++id) {
    const size_t use = below(10);
    if (use < 4 && !plain.items().empty()) {
      const size_t at = below(plain.items().size());
      const Order::Place place = places.at(plain.items()[at].id);
      if (use > 0) {
        order.Touch(place);
        plain.Touch(at);
      } else {
        order.Remove(place);
        places.erase(plain.Remove(at).id);
      }
      continue;
    }
    // The first owners add most.
    const std::string owner(1, static_cast<char>('a' + below(1 + below(6))));
    const PlainFairOrder::Item item{owner, static_cast<int64_t>(1 + below(below(8) ? 12 : 60)), id};
    const std::map<std::string, int64_t> before = plain.Sums();
    places[id] = Add(&order, owner, item.charge, id);
    plain.Add(item);
    const auto owners = static_cast<int64_t>(plain.Sums().size());
    while (plain.held() > kCapacity) {
      ASSERT_EQ(order.held(), Bytes(plain.held()));
      const auto next = plain.Remove(plain.Next());
      ASSERT_EQ(*order.Next(), next.id);
      order.Remove(order.Next());
      places.erase(next.id);
      ++went;
      if (next.id != id) continue;
      ++went_at_once;
      EXPECT_GT(next.charge * owners, kCapacity);
      EXPECT_EQ(plain.Sums().count(owner), 0u);
      for (const auto& [other, sum] : plain.Sums()) EXPECT_LE(sum, next.charge) << other;
    }
    std::map<std::string, int64_t> after = plain.Sums();
    for (const auto& [one, held] : before) {
      const int64_t sum = held + (one == owner ? item.charge : 0);
      if (sum * owners > kCapacity) continue;
      EXPECT_EQ(after[one], sum);
      ++kept_within;
    }
  }
  EXPECT_GT(went, 1000);
  EXPECT_GT(went_at_once, 10);
  EXPECT_GT(kept_within, 1000);
}

}  // namespace
}  // namespace stowage::testing
