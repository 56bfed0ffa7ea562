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

constexpr Bytes kByte{1};
constexpr Bytes kTen{10};

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
  Order order(kTen);
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
  Order order(kByte);
  Add(&order, "much", 4, 10);
  Add(&order, "little", 5, 20);
  Add(&order, "much", 4, 11);
  Add(&order, "much", 4, 12);
  EXPECT_EQ(Emptied(&order), (std::vector<int>{10, 11, 20, 12}));
}

TEST(FairOrder, OfOwnersOfOneRankWhoseFirstItemWasUsedLongestAgoGoesNext) {
  Order order(kTen);
  const auto of_a = Add(&order, "a", 6, 1);
  const auto of_b = Add(&order, "b", 9, 2);
  EXPECT_EQ(*order.Next(), 1) << "however much less it is";
  order.Touch(of_a);
  EXPECT_EQ(*order.Next(), 2);
  order.Touch(of_b);
  EXPECT_EQ(*order.Next(), 1);
  const auto more = Add(&order, "b", 1, 3);
  EXPECT_EQ(*order.Next(), 2) << "a granule";
  order.Remove(more);
  EXPECT_EQ(*order.Next(), 1);
}

TEST(FairOrder, TheUseOfAnItemThatIsNotItsOwnersFirstChangesNoRank) {
  Order order(Bytes(100));
  Add(&order, "a", 1, 1);
  Add(&order, "b", 1, 2);
  order.Touch(Add(&order, "a", 1, 3));
  EXPECT_EQ(Emptied(&order), (std::vector<int>{1, 2, 3}));
}

TEST(FairOrder, AnOwnerWhoseFirstItemIsGoneHasTheRankOfTheNextOne) {
  Order order(Bytes(100));
  const auto first = Add(&order, "a", 1, 1);
  Add(&order, "b", 1, 2);
  Add(&order, "a", 1, 3);
  order.Remove(first);
  EXPECT_EQ(Emptied(&order), (std::vector<int>{2, 3}));
}

TEST(FairOrder, ManyOwnersOfLittleEachAreLeastRecentlyUsedTogether) {
  constexpr int kOwners = 80;
  Order order(Bytes(100));
  std::vector<Order::Place> places;
  for (int i = 0; i < kOwners; ++i) {
    places.push_back(Add(&order, "owner " + std::to_string(i), 1 + 37 * i % 99, i));
  }
  std::vector<int> used(kOwners);
  for (int i = 0; i < kOwners; ++i) used[static_cast<size_t>(i)] = 7 * i % kOwners;
  for (const int i : used) order.Touch(places[static_cast<size_t>(i)]);
  EXPECT_EQ(Emptied(&order), used);
}

TEST(FairOrder, WhatWasJustAddedGoesOnlyWhereEveryOtherOwnerIsOfALowerRank) {
  Order order(kTen);
  Add(&order, "a", 20, 1);
  const auto as_many_granules = Add(&order, "b", 29, 2);
  EXPECT_EQ(*order.Next(), 1);
  order.Remove(as_many_granules);
  Add(&order, "b", 30, 3);
  EXPECT_EQ(*order.Next(), 3);
  Add(&order, "b", 30, 4);
  EXPECT_EQ(*order.Next(), 3);
}

TEST(FairOrder, AGranuleIsA64thOfTheCapacityAndAtLeastAByte) {
  EXPECT_EQ(FairGranule(Bytes(6400)), Bytes(100));
  EXPECT_EQ(FairGranule(Bytes(63)), Bytes(1));
  EXPECT_EQ(FairGranule(Bytes(0)), Bytes(1));
}

TEST(FairOrder, NothingButWhatIsMadeAllocates) {
  const std::string owner(100, 'o'), other(100, 'p');
  Order order(kByte);
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
  Order order(kByte);
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

  explicit PlainFairOrder(int64_t granule) : granule_(granule) {}

  void Add(const Item& item) { items_.push_back(item); }
  Item Remove(size_t at) {
    const Item item = items_[at];
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(at));
    return item;
  }
  void Touch(size_t at) {
    std::rotate(items_.begin() + static_cast<std::ptrdiff_t>(at),
                items_.begin() + static_cast<std::ptrdiff_t>(at) + 1, items_.end());
  }
  // The least recently used item of those whose owners are of the greatest rank.
  size_t Next() const {
    const std::map<std::string, int64_t> sums = Sums();
    int64_t greatest = 0;
    for (const auto& [owner, sum] : sums) greatest = std::max(greatest, sum / granule_);
    size_t at = 0;
    while (sums.at(items_[at].owner) / granule_ < greatest) ++at;
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
  const int64_t granule_;
  std::vector<Item> items_;  // the least recently used first
};

// Whatever is added, used and removed: what goes is what the plain order says, and an owner that
// holds at most its share less a granule loses nothing by what others add.
TEST(FairOrder, AnOwnerWithinItsShareLosesNothingByOthers) {
  constexpr int64_t kCapacity = 100;
  int went = 0, went_at_once = 0, kept_within = 0, kept_below_a_granule = 0;
  for (const int64_t granule : {1, 7, 30, 101}) {
    SCOPED_TRACE(granule);
    std::mt19937 random(7);
    const auto below = [&](size_t limit) { return random() % limit; };
    Order order{Bytes(granule)};
    PlainFairOrder plain(granule);
    std::map<int, Order::Place> places;
    for (int id = 0; id < 10000; ++id) {
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
      const PlainFairOrder::Item item{owner, static_cast<int64_t>(1 + below(below(8) ? 12 : 60)),
                                      id};
      const std::map<std::string, int64_t> before = plain.Sums();
      places[id] = Add(&order, owner, item.charge, id);
      plain.Add(item);
      const auto owners = static_cast<int64_t>(plain.Sums().size());
      bool is_any_at_a_granule = true;  // at each moment when something went
      while (plain.held() > kCapacity) {
        ASSERT_EQ(order.held(), Bytes(plain.held()));
        const std::map<std::string, int64_t> sums = plain.Sums();
        is_any_at_a_granule &= std::any_of(
            sums.begin(), sums.end(), [granule](const auto& one) { return one.second >= granule; });
        const auto next = plain.Remove(plain.Next());
        ASSERT_EQ(*order.Next(), next.id);
        order.Remove(order.Next());
        places.erase(next.id);
        ++went;
        if (next.id != id) continue;
        ++went_at_once;
        EXPECT_GT(next.charge * owners, kCapacity);
        EXPECT_EQ(plain.Sums().count(owner), 0u);
        for (const auto& [other, sum] : plain.Sums()) {
          EXPECT_LT(sum / granule, next.charge / granule) << other;
        }
      }
      std::map<std::string, int64_t> after = plain.Sums();
      for (const auto& [one, held] : before) {
        const int64_t sum = held + (one == owner ? item.charge : 0);
        const bool is_within = (sum + granule) * owners <= kCapacity;
        const bool is_below_a_granule = sum < granule && is_any_at_a_granule;
        if (!is_within && !is_below_a_granule) continue;
        EXPECT_EQ(after[one], sum);
        (is_within ? kept_within : kept_below_a_granule) += 1;
      }
    }
  }
  EXPECT_GT(went, 1000);
  EXPECT_GT(went_at_once, 10);
  EXPECT_GT(kept_within, 1000);
  EXPECT_GT(kept_below_a_granule, 1000);
}

}  // namespace
}  // namespace stowage::testing
