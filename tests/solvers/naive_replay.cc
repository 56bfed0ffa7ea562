#include "tests/solvers/naive_replay.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace stowage::testing {
namespace {

using Tensors = std::map<std::string, int64_t>;

std::string Plain(int l) { return "a" + std::to_string(l); }
std::string Saved(int l) { return "saved" + std::to_string(l); }
std::string Gradient(int l) { return "delta" + std::to_string(l); }

int64_t Sum(const Tensors& tensors) {
  int64_t sum = 0;
  for (const auto& [name, bytes] : tensors) sum += bytes;
  return sum;
}

struct Copy {
  std::string tensor;
  size_t instruction = 0;
  int64_t duration = 0;
};

// The least whole number of nanoseconds in which the bytes get through, after the latency.
int64_t Duration(const CopyCost& cost, int64_t bytes) {
  const int64_t scaled = bytes * 1000000000;
  int64_t time = scaled / cost.bytes_per_second;
  while (time * cost.bytes_per_second < scaled) ++time;
  return cost.latency.value() + time;
}

class World {
 public:
  World(const Chain& chain, const Schedule& schedule, const TransferModel* transfers)
      : chain_(chain), schedule_(schedule), transfers_(transfers), loss_(chain.length() + 1) {
    held_ = {{Plain(0), chain.spec().input.value()},
             {Gradient(loss_), chain.gradient(loss_).value()}};
    result_.spans.resize(schedule.size());
    result_.peak = Sum(held_);
  }

  NaiveResult Run() {
    while (!failed_) {
      if (ChannelMoves(0) || ChannelMoves(1) || ComputeMoves()) continue;
      std::optional<int64_t> next = NextEvent();
      if (!next) break;
      if (compute_ends_ <= now_) result_.idle_time += *next - now_;  // it is waiting
      now_ = *next;
    }
    const bool ended = !failed_ && next_ == schedule_.size() && leaving_.empty() && coming_.empty();
    result_.valid = ended && static_cast<int>(backwards_.size()) == loss_;
    return result_;
  }

 private:
  std::optional<int64_t> NextEvent() const {
    std::optional<int64_t> next;
    const auto consider = [&](int64_t time) {
      if (time > now_ && (!next || time < *next)) next = time;
    };
    consider(compute_ends_);
    // Copies after the last instruction keep nobody waiting.
    if (next_ == schedule_.size()) return next;
    for (const std::optional<int64_t>& end : channel_ends_) {
      if (end) consider(*end);
    }
    return next;
  }

  // Ends or starts a copy that is due.
  bool ChannelMoves(size_t c) {
    if (queues_[c].empty()) return false;
    const Copy& copy = queues_[c].front();
    if (!channel_ends_[c]) {
      channel_ends_[c] = now_ + copy.duration;
      result_.spans[copy.instruction] = {now_, *channel_ends_[c]};
      return true;
    }
    if (*channel_ends_[c] > now_) return false;
    arrived_.insert(copy.tensor);
    channel_ends_[c].reset();
    queues_[c].pop_front();
    return true;
  }

  bool ComputeMoves() {
    if (compute_ends_ > now_ || next_ == schedule_.size()) return false;
    const Instruction& i = schedule_[next_];
    const bool waits = i.op == Op::kOffloadWait || i.op == Op::kPrefetchWait;
    if (!waited_since_) waited_since_ = now_;
    if (waits && MustWait(i)) return false;
    duration_ = 0;
    if (!InRange(i) || !Execute(i)) {
      failed_ = true;
      return true;
    }
    compute_ends_ = now_ + duration_;
    result_.makespan = compute_ends_;
    if (!IsStart(i.op)) result_.spans[next_] = {*waited_since_, compute_ends_};
    waited_since_.reset();
    result_.peak = std::max(result_.peak, Sum(held_) + Sum(coming_));
    result_.host_peak = std::max(result_.host_peak, Sum(host_));
    ++next_;
    return true;
  }

  static bool IsStart(Op op) { return op == Op::kOffloadStart || op == Op::kPrefetchStart; }

  // Whether the copy of which the instruction is the wait goes on.
  bool MustWait(const Instruction& i) const {
    const std::string name = NameOf(i);
    const bool goes = i.op == Op::kOffloadWait ? leaving_.count(name) : coming_.count(name);
    return goes && arrived_.count(name) == 0;
  }

  static std::string NameOf(const Instruction& i) {
    return i.tensor == TensorKind::kSaved ? Saved(i.stage) : Plain(i.stage);
  }

  bool InRange(const Instruction& i) const {
    const bool transfer =
        !IsForward(i.op) && i.op != Op::kBackward && i.op != Op::kDiscard && i.op != Op::kReduce;
    Stream stream = Stream::kCompute;
    if (i.op == Op::kOffloadStart) stream = Stream::kToHost;
    if (i.op == Op::kPrefetchStart) stream = Stream::kToDevice;
    if (i.stream != stream || i.stage < 0 || i.stage > loss_) return false;
    const bool plain = i.tensor == TensorKind::kActivation;
    if (transfer && plain && i.stage == loss_) return false;
    return i.stage > 0 || (plain && (transfer || i.op == Op::kDiscard));
  }

  bool Has(const std::string& name) const { return held_.count(name) > 0; }
  bool HasInput(int l) const { return Has(Plain(l - 1)) || Has(Saved(l - 1)); }
  bool Anywhere(const std::string& name) const { return Has(name) || host_.count(name) > 0; }

  bool Erase(const std::string& name) { return leaving_.count(name) == 0 && held_.erase(name) > 0; }

  void Runs(int64_t time, Bytes overhead) {
    duration_ = time;
    result_.peak = std::max(result_.peak, Sum(held_) + Sum(coming_) + overhead.value());
  }

  bool Execute(const Instruction& i) {
    switch (i.op) {
      case Op::kForwardKeepAll:
      case Op::kForwardKeepInput:
      case Op::kForwardKeepNothing:
        return Forward(i.op, i.stage);
      case Op::kBackward:
        return RunBackward(i.stage);
      case Op::kDiscard:
        if (leaving_.count(NameOf(i)) + coming_.count(NameOf(i)) > 0) return false;
        return held_.erase(NameOf(i)) + host_.erase(NameOf(i)) > 0;
      case Op::kReduce:
        if (Anywhere(Plain(i.stage)) || !Erase(Saved(i.stage))) return false;
        held_[Plain(i.stage)] = chain_.stage(i.stage).output.value();
        return true;
      default:
        return transfers_ != nullptr && Transfer(i);
    }
  }

  bool Forward(Op op, int l) {
    const Stage& stage = chain_.stage(l);
    const bool all = op == Op::kForwardKeepAll;
    const bool drop = op == Op::kForwardKeepNothing;
    const std::string made = all ? Saved(l) : Plain(l);
    if (!HasInput(l) || (drop && !Has(Plain(l - 1))) || Anywhere(made)) return false;
    if (ran_.count(l) > 0) {
      if (stage.collective || stage.must_keep) return false;
      result_.recompute_time += stage.forward_time.value();
      result_.recomputed_forwards += 1;
    }
    ran_.insert(l);
    held_[made] = all ? stage.saved.value() : stage.output.value();
    Runs(stage.forward_time.value(), all ? stage.forward_saving_overhead : stage.forward_overhead);
    return !drop || Erase(Plain(l - 1));
  }

  bool RunBackward(int l) {
    const Stage& stage = chain_.stage(l);
    if (!Has(Gradient(l)) || !Has(Saved(l)) || !HasInput(l)) return false;
    Runs(stage.backward_time.value(), stage.backward_overhead);
    held_.erase(Gradient(l));
    if (!Erase(Saved(l))) return false;
    if (Has(Plain(l - 1)) && !Erase(Plain(l - 1))) return false;
    held_[Gradient(l - 1)] = chain_.gradient(l - 1).value();
    backwards_.insert(l);
    return true;
  }

  bool Transfer(const Instruction& i) {
    const std::string name = NameOf(i);
    const int64_t bytes = i.tensor == TensorKind::kSaved ? chain_.stage(i.stage).saved.value()
                                                         : chain_.activation(i.stage).value();
    switch (i.op) {
      case Op::kOffloadStart:
        if (!Has(name) || host_.count(name) > 0) return false;
        leaving_.insert(name);
        host_[name] = bytes;
        if (Sum(host_) > transfers_->host_memory.value()) return false;
        result_.sent += bytes;
        Enqueue(name, 0, Duration(transfers_->to_host, bytes));
        return true;
      case Op::kPrefetchStart:
        if (host_.count(name) == 0 || leaving_.count(name) + coming_.count(name) > 0) return false;
        coming_[name] = bytes;
        result_.fetched += bytes;
        Enqueue(name, transfers_->full_duplex ? 1 : 0, Duration(transfers_->to_device, bytes));
        return true;
      case Op::kOffloadWait:
        if (leaving_.erase(name) == 0) return false;
        arrived_.erase(name);
        held_.erase(name);
        return true;
      default:
        if (coming_.erase(name) == 0) return false;
        arrived_.erase(name);
        host_.erase(name);
        held_[name] = bytes;
        return true;
    }
  }

  void Enqueue(const std::string& name, size_t channel, int64_t duration) {
    queues_[channel].push_back({name, next_, duration});
  }

  const Chain& chain_;
  const Schedule& schedule_;
  const TransferModel* transfers_;
  const int loss_;

  int64_t now_ = 0;
  size_t next_ = 0;           // instruction
  int64_t compute_ends_ = 0;  // what compute has begun
  std::optional<int64_t> waited_since_;
  std::deque<Copy> queues_[2];
  std::optional<int64_t> channel_ends_[2];  // of the first in the queue, if it runs

  Tensors held_, host_, coming_;
  std::set<std::string> leaving_, arrived_;
  std::set<int> ran_, backwards_;
  int64_t duration_ = 0;
  bool failed_ = false;
  NaiveResult result_;
};

}  // namespace

NaiveResult NaiveReplay(const Chain& chain, const Schedule& schedule,
                        const TransferModel* transfers) {
  return World(chain, schedule, transfers).Run();
}

}  // namespace stowage::testing
