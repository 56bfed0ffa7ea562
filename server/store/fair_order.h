// Several owners share a capacity in bytes. Owners are ranked by what each holds, in whole granules. Of the owners of the greatest rank the
// least recently used item goes next, whosever of them it is. So owners of little each are as one, and what is used stays.
//
// While all together are over the capacity, whoever uses a FairOrder takes the next item out (Next, Remove). At each such moment, where n
// owners hold items, the owner of the item just added among them:
//  - An owner that holds at most capacity / n - granule loses nothing, whatever the others add: n owners hold more than the capacity, so
//    that the largest holds more than capacity / n, which is more than a granule above this one: its rank is greater.
//  - An owner that holds less than a granule loses something only where every owner holds less than one.
//  - What an owner leaves of its share is the others'. An owner that is alone may fill the capacity: least recently used first.
//  - The item just added goes at once only where it is all that its owner holds, and every other owner is of a lower rank: it is the
//    most recently used of all. Then it alone is more than capacity / n.
// What an owner holds within its share stays however long nobody has used it.
//
// A PreparedItem allocates, nothing else does. Next takes O(1), Add, Touch and Remove O(log owners).
#ifndef STOWAGE_SERVER_STORE_FAIR_ORDER_H_
#define STOWAGE_SERVER_STORE_FAIR_ORDER_H_

#include <algorithm>
#include <cstdint>
#include <list>
#include <map>
#include <utility>

#include "solvers/model/units.h"

namespace stowage {

// Of a capacity: a 64th, at least a byte. So up to 63 owners have shares.
inline Bytes FairGranule(Bytes capacity) {
  return Bytes(std::max<int64_t>(1, capacity.value() / 64));
}

// Not thread-safe. `Owner` has a < that does not throw.
template <class Owner, class Item>
class FairOrder {
 private:
  struct Holder;
  struct Node {
    Item item;
    Bytes charge;
    uint64_t used = 0;  // the clock then
    Holder* holder = nullptr;
  };
  struct Rank {
    int64_t granules = 0;
    uint64_t used = 0;  // when the holder's first item was

    // Who goes first comes first. No two holders are equal: no two items were used at once.
    bool operator<(const Rank& other) const noexcept {
      if (granules != other.granules) return granules > other.granules;
      return used < other.used;
    }
  };
  using Ranks = std::multimap<Rank, Holder*>;
  struct Holder {
    const Owner* owner = nullptr;
    Bytes sum;              // what the items are charged
    std::list<Node> items;  // the least recently used first
    typename Ranks::iterator rank;
  };

 public:
  // Of an item that is held, until it is removed; or of none.
  class Place {
   public:
    Place() = default;

    Item& operator*() const { return node_->item; }
    Item* operator->() const { return &node_->item; }

   private:
    friend class FairOrder;
    explicit Place(typename std::list<Node>::iterator node) : node_(node) {}

    typename std::list<Node>::iterator node_;
  };

  // An item with all the memory that adding it takes. So who fills other tables, too, can allocate for all of them before the first
  // one changes.
  class PreparedItem {
   public:
    PreparedItem(const Owner& owner, Bytes charge, Item item) {
      node_.push_back(Node{std::move(item), charge});
      holder_[owner];
      rank_.emplace(Rank(), nullptr);
    }
    PreparedItem(PreparedItem&&) = default;

   private:
    friend class FairOrder;
    // Of one element each.
    std::list<Node> node_;
    std::map<Owner, Holder> holder_;
    Ranks rank_;
  };

  // `granule`: at least a byte.
  explicit FairOrder(Bytes granule) : granule_(granule) {}
  FairOrder(const FairOrder&) = delete;
  FairOrder& operator=(const FairOrder&) = delete;

  // As the most recently used one of its owner.
  Place Add(PreparedItem made) noexcept {
    const auto added = holders_.insert(made.holder_.extract(made.holder_.begin()));
    Holder* const holder = &added.position->second;
    if (added.inserted) {
      holder->owner = &added.position->first;
      holder->rank = ranks_.insert(made.rank_.extract(made.rank_.begin()));
      holder->rank->second = holder;
    }
    const auto node = made.node_.begin();
    node->holder = holder;
    node->used = ++clock_;
    holder->items.splice(holder->items.end(), made.node_);
    Charge(holder, node->charge);
    PutInRank(holder);
    return Place(node);
  }

  // It has been used.
  void Touch(Place place) noexcept {
    Holder* const holder = place.node_->holder;
    std::list<Node>& items = holder->items;
    const bool was_first = place.node_ == items.begin();
    items.splice(items.end(), items, place.node_);
    place.node_->used = ++clock_;
    if (was_first) PutInRank(holder);
  }

  void Remove(Place place) noexcept {
    Holder* const holder = place.node_->holder;
    Charge(holder, Bytes(0) - place.node_->charge);
    holder->items.erase(place.node_);
    if (!holder->items.empty()) return PutInRank(holder);
    ranks_.erase(holder->rank);
    holders_.erase(holders_.find(*holder->owner));
  }

  // What goes next. Not of an order that holds nothing.
  Place Next() const noexcept { return Place(ranks_.begin()->second->items.begin()); }

  // What all items are charged.
  Bytes held() const noexcept { return held_; }

 private:
  void Charge(Holder* holder, Bytes more) noexcept {
    held_ += more;
    holder->sum += more;
  }

  // After a change of its sum or of its first item.
  void PutInRank(Holder* holder) noexcept {
    auto rank = ranks_.extract(holder->rank);
    rank.key() = {holder->sum.value() / granule_.value(), holder->items.front().used};
    holder->rank = ranks_.insert(std::move(rank));
  }

  const Bytes granule_;
  Bytes held_;
  uint64_t clock_ = 0;  // counts uses
  std::map<Owner, Holder> holders_;
  Ranks ranks_;  // of the holders
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_FAIR_ORDER_H_
