// Several owners share a capacity in bytes. The least recently used item goes next of the owner that holds most.
//
// While all together are over the capacity, whoever uses a FairOrder takes the next item out (Next, Remove). At each such moment, where n
// owners hold items, the owner of the item just added among them:
//  - An owner that holds at most capacity / n loses nothing, whatever the others add: the mean of what n owners hold is above
//    capacity / n, and the largest holder has at least the mean.
//  - What an owner leaves of that share is the others'. An owner that is alone may fill the capacity: least recently used first.
//  - The item just added goes at once only where it is all that its owner holds, and no other owner holds more. Then it alone is
//    more than capacity / n.
// Of owners that hold the same, the one whose sum has not changed for longest comes first. What an owner holds within its share stays
// however long nobody has used it.
//
// A PreparedItem allocates, nothing else does. Touch and Next take O(1), Add and Remove O(log owners).
#ifndef STOWAGE_SERVER_STORE_FAIR_ORDER_H_
#define STOWAGE_SERVER_STORE_FAIR_ORDER_H_

#include <functional>
#include <list>
#include <map>
#include <utility>

#include "solvers/model/units.h"

namespace stowage {

// Not thread-safe. `Owner` has a < that does not throw.
template <class Owner, class Item>
class FairOrder {
 private:
  struct Holder;
  struct Node {
    Item item;
    Bytes charge;
    Holder* holder = nullptr;
  };
  using Ranks = std::multimap<Bytes, Holder*, std::greater<Bytes>>;
  struct Holder {
    const Owner* owner = nullptr;
    std::list<Node> items;          // the least recently used first
    typename Ranks::iterator rank;  // its key is what the items are charged together
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
      rank_.emplace(Bytes(0), nullptr);
    }
    PreparedItem(PreparedItem&&) = default;

   private:
    friend class FairOrder;
    // Of one element each.
    std::list<Node> node_;
    std::map<Owner, Holder> holder_;
    Ranks rank_;
  };

  FairOrder() = default;
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
    holder->items.splice(holder->items.end(), made.node_);
    Charge(holder, node->charge);
    return Place(node);
  }

  // It has been used.
  void Touch(Place place) noexcept {
    std::list<Node>& items = place.node_->holder->items;
    items.splice(items.end(), items, place.node_);
  }

  void Remove(Place place) noexcept {
    Holder* const holder = place.node_->holder;
    Charge(holder, Bytes(0) - place.node_->charge);
    holder->items.erase(place.node_);
    if (!holder->items.empty()) return;
    ranks_.erase(holder->rank);
    holders_.erase(holders_.find(*holder->owner));
  }

  // What goes next. Not of an order that holds nothing.
  Place Next() const noexcept { return Place(ranks_.begin()->second->items.begin()); }

  // What all items are charged.
  Bytes held() const noexcept { return held_; }

 private:
  // Of equal sums the latest that changed is the last.
  void Charge(Holder* holder, Bytes more) noexcept {
    held_ += more;
    auto rank = ranks_.extract(holder->rank);
    rank.key() += more;
    holder->rank = ranks_.insert(std::move(rank));
  }

  Bytes held_;
  std::map<Owner, Holder> holders_;
  Ranks ranks_;  // of the holders, who holds most first
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_FAIR_ORDER_H_
