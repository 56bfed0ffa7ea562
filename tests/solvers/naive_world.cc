#include "tests/solvers/naive_world.h"

#include <algorithm>
#include <utility>

namespace stowage::testing {
namespace {

int64_t Sum(const std::map<std::string, int64_t>& tensors) {
  int64_t sum = 0;
  for (const auto& [name, bytes] : tensors) sum += bytes;
  return sum;
}

// The least whole number of nanoseconds in which the bytes get through, after the latency.
int64_t Duration(const CopyCost& cost, int64_t bytes) {
  const int64_t scaled = bytes * 1000000000;
  int64_t time = scaled / cost.bytes_per_second;
  while (time * cost.bytes_per_second < scaled) ++time;
  return cost.latency.value() + time;
}

bool IsStart(Op op) { return op == Op::kOffloadStart || op == Op::kPrefetchStart; }
bool IsWait(Op op) { return op == Op::kOffloadWait || op == Op::kPrefetchWait; }

bool OnItsStream(const Instruction& i) {
  Stream stream = Stream::kCompute;
  if (i.op == Op::kOffloadStart) stream = Stream::kToHost;
  if (i.op == Op::kPrefetchStart) stream = Stream::kToDevice;
  return i.stream == stream;
}

bool Meet(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&b](const std::string& name) { return b.count(name); });
}

}  // namespace

NaiveWorld::NaiveWorld(const Schedule& schedule, const TransferModel* transfers)
    : schedule_(schedule), transfers_(transfers) {
  result_.spans.resize(schedule.size());
}

NaiveResult NaiveWorld::Run() {
  NotePeak(Bytes(0));
  while (!failed_) {
    if (ChannelMoves(0) || ChannelMoves(1) || CommunicationMoves() || ComputeMoves()) continue;
    std::optional<int64_t> next = NextEvent();
    if (!next) break;
    if (compute_ends_ <= now_) result_.idle_time += *next - now_;  // it is waiting
    now_ = *next;
  }
  result_.makespan = std::max(result_.makespan, now_);  // communication may end it
  const bool ended = !failed_ && next_ == schedule_.size() && leaving_.empty() && coming_.empty();
  result_.valid = ended && Done();
  return result_;
}

void NaiveWorld::Runs(Nanos time, Bytes overhead) {
  duration_ = time.value();
  NotePeak(overhead);
}

void NaiveWorld::RunsAgain(Nanos time) {
  result_.recompute_time += time.value();
  result_.recomputed_forwards += 1;
}

void NaiveWorld::NotePeak(Bytes beside) {
  most_ = std::max(most_, Taken() + beside.value());
  result_.peak = std::max(result_.peak, most_);
}

int64_t NaiveWorld::Taken() const {
  int64_t taken = Sum(held_) + Sum(coming_);
  for (const Communication& c : communications_) taken += c.kept;
  return taken;
}

std::optional<int64_t> NaiveWorld::NextEvent() const {
  std::optional<int64_t> next;
  const auto consider = [&](int64_t time) {
    if (time > now_ && (!next || time < *next)) next = time;
  };
  consider(compute_ends_);
  if (communication_ends_) consider(*communication_ends_);
  // Copies after the last instruction keep nobody waiting.
  if (next_ == schedule_.size()) return next;
  for (const std::optional<int64_t>& end : channel_ends_) {
    if (end) consider(*end);
  }
  return next;
}

// Ends or starts a copy that is due.
bool NaiveWorld::ChannelMoves(size_t c) {
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

// The same of a communication.
bool NaiveWorld::CommunicationMoves() {
  if (communicated_ == communications_.size()) return false;
  const Communication& next = communications_[communicated_];
  if (!communication_ends_) {
    communication_ends_ = now_ + next.duration;
    result_.spans[next.instruction] = {now_, *communication_ends_};
    return true;
  }
  if (*communication_ends_ > now_) return false;
  communication_ends_.reset();
  ++communicated_;
  return true;
}

bool NaiveWorld::ComputeMoves() {
  if (compute_ends_ > now_ || next_ == schedule_.size()) return false;
  const Instruction& i = schedule_[next_];
  duration_ = most_ = 0;
  const bool communicates = i.stream == Stream::kCommunication;
  if (!Exists(i) || (communicates ? !MayCommunicate(i) : !OnItsStream(i))) {
    failed_ = true;
    return true;
  }
  if (communicates) return Communicate(i);
  if (!Observes(i)) return false;
  if (!waited_since_) waited_since_ = now_;
  if (IsWait(i.op) && MustWait(i)) return false;
  if (!Carry(i)) {
    failed_ = true;
    return true;
  }
  compute_ends_ = now_ + duration_;
  result_.makespan = compute_ends_;
  if (!IsStart(i.op)) result_.spans[next_] = {*waited_since_, compute_ends_};
  waited_since_.reset();
  EndInstruction();
  return true;
}

void NaiveWorld::EndInstruction() {
  NotePeak(Bytes(0));
  result_.host_peak = std::max(result_.host_peak, Sum(host_));
  ++next_;
}

bool NaiveWorld::RunsRightBeforeItsBackward(bool* drops) const {
  *drops = false;
  const int stage = schedule_[next_].stage;
  for (size_t i = next_ + 1; i < schedule_.size(); ++i) {
    const Instruction& later = schedule_[i];
    if (IsForward(later.op)) return false;
    if (later.op == Op::kBackward) return later.stage == stage;
    const bool drop = later == Discard(TensorKind::kActivation, stage) && later.op == Op::kDiscard;
    *drops = *drops || drop;
    if (later.stage == stage && !drop) return false;
  }
  return false;
}

bool NaiveWorld::MayCommunicate(const Instruction& i) const {
  return i.part == 0 && (IsForward(i.op) || i.op == Op::kBackward) && IsCollective(i);
}

void NaiveWorld::NamesOf(const Instruction& i, NameSet* reads, NameSet* writes) const {
  if (IsForward(i.op) || i.op == Op::kBackward || i.op == Op::kDropSavedKeepOutput) {
    return Touch(i, reads, writes);
  }
  NameSet* names = i.op == Op::kOffloadStart ? reads : writes;
  for (const std::string& piece : PiecesOf(i)) names->insert(piece);
}

bool NaiveWorld::Observes(const Instruction& i) {
  NameSet reads, writes;
  NamesOf(i, &reads, &writes);
  size_t observed = communications_.size();
  for (; observed > 0; --observed) {
    const Communication& c = communications_[observed - 1];
    if (Meet(reads, c.writes) || Meet(writes, c.reads) || Meet(writes, c.writes)) break;
  }
  if (observed > communicated_) return false;
  communications_.erase(communications_.begin(),
                        communications_.begin() + static_cast<std::ptrdiff_t>(observed));
  communicated_ -= observed;
  return true;
}

bool NaiveWorld::Communicate(const Instruction& i) {
  Communication communication;
  NamesOf(i, &communication.reads, &communication.writes);
  failed_ = !Carry(i);
  if (failed_) return true;
  EndInstruction();
  communication.instruction = next_ - 1;
  communication.duration = duration_;
  communication.kept = most_ - Taken();
  result_.communication_time += duration_;
  communications_.push_back(std::move(communication));
  return true;
}

// Whether the copy of which the instruction is the wait goes on.
bool NaiveWorld::MustWait(const Instruction& i) const {
  const std::string name = NameOf(i);
  const bool goes = i.op == Op::kOffloadWait ? leaving_.count(name) : coming_.count(name);
  return goes && arrived_.count(name) == 0;
}

bool NaiveWorld::Carry(const Instruction& i) {
  if (i.op == Op::kDiscard) return Discarded(i);
  if (!IsStart(i.op) && !IsWait(i.op)) return Execute(i);
  return transfers_ != nullptr && Transfer(i);
}

bool NaiveWorld::Vanishes(const std::vector<std::string>& names) {
  size_t dropped = 0;
  for (const std::string& name : names) {
    if (leaving_.count(name) + coming_.count(name) > 0) return false;
    dropped += held_.erase(name) + host_.erase(name);
  }
  return dropped > 0;
}

bool NaiveWorld::Transfer(const Instruction& i) {
  const std::string name = NameOf(i);
  switch (i.op) {
    case Op::kOffloadStart: {
      if (OnHost(name) || OnHost(WholeOf(i))) return false;
      int64_t bytes = 0;
      for (const std::string& piece : PiecesOf(i)) {
        if (!Has(piece) || OnHost(piece)) return false;
        bytes += held_[piece];
      }
      leaving_.insert(name);
      host_[name] = bytes;
      if (Sum(host_) > transfers_->host_memory.value()) return false;
      result_.offloaded += bytes;
      Enqueue(name, 0, Duration(transfers_->to_host, bytes));
      return true;
    }
    case Op::kPrefetchStart: {
      if (host_.count(name) == 0 || leaving_.count(name) + coming_.count(name) > 0) return false;
      const int64_t bytes = host_[name];
      coming_[name] = bytes;
      result_.prefetched += bytes;
      Enqueue(name, transfers_->full_duplex ? 1 : 0, Duration(transfers_->to_device, bytes));
      return true;
    }
    case Op::kOffloadWait:
      if (leaving_.erase(name) == 0) return false;
      arrived_.erase(name);
      away_[name].clear();
      for (const std::string& piece : PiecesOf(i)) away_[name].insert(held_.extract(piece));
      return true;
    default:
      if (coming_.erase(name) == 0) return false;
      arrived_.erase(name);
      held_.merge(away_[name]);
      host_.erase(name);
      return true;
  }
}

void NaiveWorld::Enqueue(const std::string& name, size_t channel, int64_t duration) {
  queues_[channel].push_back({name, next_, duration});
}

}  // namespace stowage::testing
