// Which keys a cache of bounded bytes holds when the least recently used go first.
#ifndef STOWAGE_TESTS_BENCH_CLUSTER_LRU_H_
#define STOWAGE_TESTS_BENCH_CLUSTER_LRU_H_

#include <cstdint>
#include <iterator>
#include <list>
#include <unordered_map>
#include <utility>

namespace stowage {

class Lru {
 public:
  explicit Lru(double capacity) : capacity_(capacity) {}

  bool Touch(uint64_t key) {
    const auto found = places_.find(key);
    if (found == places_.end()) return false;
    recent_.splice(recent_.begin(), recent_, found->second);
    return true;
  }
  void Insert(uint64_t key, double size) {
    if (Touch(key) || size > capacity_) return;
    recent_.emplace_front(key, size);
    places_[key] = recent_.begin();
    used_ += size;
    while (used_ > capacity_) Erase(std::prev(recent_.end()));
  }
  void Remove(uint64_t key) {
    const auto found = places_.find(key);
    if (found != places_.end()) Erase(found->second);
  }
  void Clear() {
    recent_.clear();
    places_.clear();
    used_ = 0;
  }
  bool Holds(uint64_t key) const { return places_.count(key) != 0; }
  double used() const { return used_; }
  double capacity() const { return capacity_; }
  size_t size() const { return places_.size(); }

 private:
  using List = std::list<std::pair<uint64_t, double>>;

  void Erase(List::iterator place) {
    used_ -= place->second;
    places_.erase(place->first);
    recent_.erase(place);
  }

  double capacity_;
  double used_ = 0;
  List recent_;
  std::unordered_map<uint64_t, List::iterator> places_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_CLUSTER_LRU_H_
