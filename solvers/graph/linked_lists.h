// Many doubly linked lists whose items are numbers handed out in the order they are added; an item
// is taken out in O(1).
#ifndef STOWAGE_SOLVERS_GRAPH_LINKED_LISTS_H_
#define STOWAGE_SOLVERS_GRAPH_LINKED_LISTS_H_

#include <cstddef>
#include <vector>

#include "solvers/model/index.h"

namespace stowage {

class LinkedLists {
 public:
  static constexpr int kNone = -1;

  explicit LinkedLists(size_t lists) : front_(lists, kNone), back_(lists, kNone) {}

  int Append(int list, int value) { return Insert(list, back_[Index(list)], kNone, value); }
  int Prepend(int list, int value) { return Insert(list, kNone, front_[Index(list)], value); }
  void Erase(int item) {
    const Item& gone = items_[Index(item)];
    Forward(gone.list, gone.before) = gone.after;
    Backward(gone.list, gone.after) = gone.before;
  }

  int front(int list) const { return front_[Index(list)]; }
  int after(int item) const { return items_[Index(item)].after; }
  int value(int item) const { return items_[Index(item)].value; }
  void set_value(int item, int value) { items_[Index(item)].value = value; }

 private:
  struct Item {
    int list;
    int before;
    int after;
    int value;
  };
  int& Forward(int list, int item) {
    return item == kNone ? front_[Index(list)] : items_[Index(item)].after;
  }
  int& Backward(int list, int item) {
    return item == kNone ? back_[Index(list)] : items_[Index(item)].before;
  }
  int Insert(int list, int before, int after, int value) {
    const int item = static_cast<int>(items_.size());
    items_.push_back({list, before, after, value});
    Forward(list, before) = item;
    Backward(list, after) = item;
    return item;
  }

  std::vector<Item> items_;
  std::vector<int> front_;
  std::vector<int> back_;
};

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_GRAPH_LINKED_LISTS_H_
