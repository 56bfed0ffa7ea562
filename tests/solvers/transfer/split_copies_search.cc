#include "tests/solvers/transfer/split_copies_search.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

namespace stowage::testing {
namespace {

// Offloads go up, prefetches down: how much has been moved says what.
struct Moment {
  int done = 0;      // ops; forwards 0..n-1, then backwards n-1..0
  int op_left = -1;  // -1: none runs
  int64_t out = 0;   // parts of bytes that have left
  int64_t in = 0;    // and come back

  friend bool operator<(const Moment& a, const Moment& b) {
    return std::tie(a.done, a.op_left, a.out, a.in) < std::tie(b.done, b.op_left, b.out, b.in);
  }
};

class Search {
 public:
  Search(const OffloadProblem& problem, const OffloadSet& set)
      : p_(problem),
        set_(set),
        n_(problem.size()),
        out_time_(1000000000 / problem.link().to_host.bytes_per_second),
        in_time_(1000000000 / problem.link().to_device.bytes_per_second),
        all_(Parts(problem.BytesOf(set))) {}

  std::optional<Nanos> Run() {
    if (p_.BytesOf(set_) > p_.link().host_memory) return std::nullopt;
    std::set<Moment> now;
    Reach(Moment(), &now);
    // Whoever neither computes nor copies for longer than all copies take gets nowhere.
    const int64_t limit = p_.ideal_time().value() + all_ * 2 + 2;
    for (int64_t time = 0; time <= limit; ++time) {
      std::set<Moment> next;
      for (const Moment& m : now) {
        if (m.done == 2 * n_) return Nanos(time);
        Tick(m, 0, 0, &next);
        Tick(m, in_time_, 0, &next);
        Tick(m, 0, out_time_, &next);
      }
      now = std::move(next);
    }
    return std::nullopt;
  }

 private:
  // A byte has so many parts that both directions move a whole number in a nanosecond.
  int64_t Parts(Bytes bytes) const { return bytes.value() * out_time_ * in_time_; }

  int64_t SetParts(int from, int to) const {
    int64_t parts = 0;
    for (const int s : set_) {
      if (s >= from && s < to) parts += Parts(p_.activation(s));
    }
    return parts;
  }

  void Reach(const Moment& m, std::set<Moment>* into) {
    if (!into->insert(m).second) return;
    if (m.op_left >= 0 || m.done == 2 * n_) return;
    const bool forward = m.done < n_;
    const int i = forward ? m.done : 2 * n_ - 1 - m.done;
    if (!forward && m.in < SetParts(i, n_)) return;
    Moment started = m;
    started.op_left =
        static_cast<int>((forward ? p_.op(i).forward_time : p_.op(i).backward_time).value());
    if (Held(started) > Parts(p_.memory())) return;
    if (started.op_left == 0) EndOp(&started);
    Reach(started, into);
  }

  static void EndOp(Moment* m) {
    m->op_left = -1;
    ++m->done;
  }

  // A nanosecond in which so much leaves or comes.
  void Tick(Moment m, int64_t out, int64_t in, std::set<Moment>* into) {
    if (out > 0 && m.out + out > SetParts(0, m.done + 1)) return;
    if (in > 0 && (m.out < all_ || m.in + in > all_)) return;
    m.in += in;
    if (Held(m) > Parts(p_.memory())) return;
    m.out += out;
    if (m.op_left > 0 && --m.op_left == 0) EndOp(&m);
    Reach(m, into);
  }

  int64_t Held(const Moment& m) const {
    const bool running = m.op_left >= 0;
    const bool forward = m.done < n_;
    const int last = forward ? m.done + (running ? 1 : 0) : 2 * n_ - m.done;
    if (m.done == 2 * n_) return 0;
    int64_t held = m.in;
    for (int i = 0; i <= last; ++i) held += Parts(p_.activation(i));
    // What was dropped has left and come back: it cancels out.
    // What a forward still reads does not count as gone.
    held -= std::min(m.out, SetParts(0, forward ? m.done : n_));
    if (!running) return held;
    return held + (forward ? Parts(p_.op(m.done).forward_need)
                           : Parts(p_.op(2 * n_ - 1 - m.done).backward_need));
  }

  const OffloadProblem& p_;
  const OffloadSet& set_;
  const int n_;
  const int64_t out_time_;  // nanoseconds for a byte
  const int64_t in_time_;
  const int64_t all_;
};

}  // namespace

std::optional<Nanos> SearchSplitCopies(const OffloadProblem& problem, const OffloadSet& set) {
  return Search(problem, set).Run();
}

}  // namespace stowage::testing
