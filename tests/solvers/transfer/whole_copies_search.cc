#include "tests/solvers/transfer/whole_copies_search.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace stowage::testing {
namespace {

constexpr int kMaxOps = 8;

enum Where : uint8_t { kHere, kLeaving, kAway, kComing, kBack };

// Everything at one moment.
struct Moment {
  std::array<uint8_t, kMaxOps> where{};
  int16_t done = 0;                             // ops; forwards 0..n-1, then backwards n-1..0
  int16_t op_left = -1;                         // time that the running op needs; -1: none runs
  std::array<int16_t, 2> copied = {-1, -1};     // by direction: which activation is being copied
  std::array<int16_t, 2> copy_left = {-1, -1};  // and its time left

  auto Key() const { return std::tie(where, done, op_left, copied, copy_left); }
  friend bool operator<(const Moment& a, const Moment& b) { return a.Key() < b.Key(); }
};

class Search {
 public:
  Search(const OffloadProblem& problem, const OffloadSet& set, CopyOrder order)
      : p_(problem), set_(set), order_(order), n_(problem.size()) {}

  std::optional<Nanos> Run() {
    std::set<Moment> now;
    Reach(Moment(), &now);
    for (int64_t time = 0; !now.empty(); ++time) {
      std::set<Moment> next;
      for (const Moment& m : now) {
        if (m.done == 2 * n_) return Nanos(time);
        const bool idle = m.op_left < 0 && m.copied[0] < 0 && m.copied[1] < 0;
        if (!idle) Reach(Tick(m), &next);
      }
      now = std::move(next);
    }
    return std::nullopt;
  }

 private:
  // All that can be made of a moment in no time.
  void Reach(const Moment& m, std::set<Moment>* into) {
    if (!into->insert(m).second) return;
    if (m.op_left < 0 && m.done < 2 * n_) StartOp(m, into);
    for (const int i : set_) {
      StartOffload(m, i, into);
      StartPrefetch(m, i, into);
    }
  }

  void StartOp(const Moment& m, std::set<Moment>* into) {
    const bool forward = m.done < n_;
    const int i = forward ? m.done : 2 * n_ - 1 - m.done;
    for (const int s : set_) {
      const uint8_t where = m.where[static_cast<size_t>(s)];
      if (forward && s == i && where > kLeaving) return;
      if (!forward && s >= i && where != kBack) return;
    }
    Moment started = m;
    started.op_left =
        static_cast<int16_t>((forward ? p_.op(i).forward_time : p_.op(i).backward_time).value());
    if (DeviceBytes(started) > p_.memory()) return;
    if (started.op_left == 0) EndOp(&started);
    Reach(started, into);
  }

  void StartOffload(const Moment& m, int i, std::set<Moment>* into) {
    if (m.where[static_cast<size_t>(i)] != kHere || m.done < i || Busy(m, 0)) return;
    for (const int s : set_) {
      const bool earlier = s < i && m.where[static_cast<size_t>(s)] == kHere;
      if (order_ == CopyOrder::kOrdered && earlier) return;
    }
    StartCopy(m, i, 0, p_.OffloadTime(i), kLeaving, into);
  }

  void StartPrefetch(const Moment& m, int i, std::set<Moment>* into) {
    if (m.where[static_cast<size_t>(i)] != kAway || Busy(m, 1)) return;
    for (const int s : set_) {
      const bool later = s > i && m.where[static_cast<size_t>(s)] < kComing;
      if (order_ == CopyOrder::kOrdered && later) return;
    }
    StartCopy(m, i, 1, p_.PrefetchTime(i), kComing, into);
  }

  bool Busy(const Moment& m, int direction) const {
    if (m.copied[static_cast<size_t>(direction)] >= 0) return true;
    return !p_.link().full_duplex && m.copied[static_cast<size_t>(1 - direction)] >= 0;
  }

  void StartCopy(Moment m, int i, size_t direction, Nanos time, Where where,
                 std::set<Moment>* into) {
    m.where[static_cast<size_t>(i)] = where;
    m.copied[direction] = static_cast<int16_t>(i);
    m.copy_left[direction] = static_cast<int16_t>(time.value());
    if (DeviceBytes(m) > p_.memory() || HostBytes(m) > p_.link().host_memory) return;
    if (time == Nanos(0)) EndCopy(direction, &m);
    Reach(m, into);
  }

  static void EndCopy(size_t direction, Moment* m) {
    ++m->where[static_cast<size_t>(m->copied[direction])];
    m->copied[direction] = m->copy_left[direction] = -1;
  }

  static void EndOp(Moment* m) {
    m->op_left = -1;
    ++m->done;
  }

  static Moment Tick(Moment m) {
    for (size_t direction = 0; direction < 2; ++direction) {
      if (m.copied[direction] >= 0 && --m.copy_left[direction] == 0) EndCopy(direction, &m);
    }
    if (m.op_left >= 0 && --m.op_left == 0) EndOp(&m);
    return m;
  }

  Bytes HostBytes(const Moment& m) const {
    Bytes bytes;
    for (const int s : set_) {
      const uint8_t where = m.where[static_cast<size_t>(s)];
      if (where == kLeaving || where == kAway || where == kComing) bytes += p_.activation(s);
    }
    return bytes;
  }

  Bytes DeviceBytes(const Moment& m) const {
    const bool running = m.op_left >= 0;
    const int forwards = std::min<int>(m.done, n_);
    const int backwards = m.done - forwards;
    Bytes bytes;
    // What has been made, or is being made, and has not been dropped.
    const int made = std::min(n_, forwards + (running ? 1 : 0));
    for (int i = 0; i <= std::min(made, n_ - backwards); ++i) {
      if (backwards == n_) break;
      bytes += OnDevice(m, i);
    }
    if (!running) return bytes;
    if (m.done < n_) return bytes + p_.op(m.done).forward_need;
    return bytes + p_.op(2 * n_ - 1 - m.done).backward_need;
  }

  Bytes OnDevice(const Moment& m, int i) const {
    const bool moved = i < n_ && std::find(set_.begin(), set_.end(), i) != set_.end();
    if (!moved) return p_.activation(i);
    Bytes bytes;
    const uint8_t where = m.where[static_cast<size_t>(i)];
    const bool read = m.done <= i;  // its forward has not ended
    if (where <= kLeaving || read) bytes += p_.activation(i);
    if (where >= kComing) bytes += p_.activation(i);
    return bytes;
  }

  const OffloadProblem& p_;
  const OffloadSet& set_;
  const CopyOrder order_;
  const int n_;
};

}  // namespace

std::optional<Nanos> SearchWholeCopies(const OffloadProblem& problem, const OffloadSet& set,
                                       CopyOrder order) {
  return Search(problem, set, order).Run();
}

}  // namespace stowage::testing
