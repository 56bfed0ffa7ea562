#include "solvers/joint/joint_state.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stowage {
namespace {

double Weight(const JointState& s) { return s.extra + s.backlog_f + s.backlog_b; }

// Of equals the first stays.
bool Better(const JointState& a, const JointState& b) {
  return std::make_tuple(Weight(a), a.kept, a.host) < std::make_tuple(Weight(b), b.kept, b.host);
}

// The least bound first; the rest tells all states of a pool apart.
bool ComesBefore(const JointState& a, const JointState& b) {
  const auto key = [](const JointState& s) {
    return std::make_tuple(s.bound, Weight(s), s.kept, s.host, s.first, s.parent_saved, s.parent,
                           s.input_away);
  };
  return key(a) < key(b);
}

}  // namespace

uint64_t StatePool::CellOf(const JointState& state) const {
  const auto side = [](double value, double unit) {
    constexpr double kMost = 65535;
    return static_cast<uint64_t>(std::min(value / unit, kMost));
  };
  const uint64_t host =
      grid_.host_limited ? side(static_cast<double>(state.host), grid_.host) : uint64_t{0};
  return side(static_cast<double>(state.kept), grid_.kept) << 48 | host << 32 |
         side(state.backlog_f, grid_.backlog) << 16 | side(state.backlog_b, grid_.backlog);
}

bool StatePool::Offer(const JointState& state) {
  const uint64_t cell = CellOf(state);
  if (states_.size() == room_) {
    const auto found = cells_.find(cell);
    if (found == cells_.end()) return false;
    if (Better(state, states_[found->second])) states_[found->second] = state;
    return true;
  }
  const auto [at, added] = cells_.try_emplace(cell, static_cast<uint32_t>(states_.size()));
  if (added) {
    states_.push_back(state);
  } else if (Better(state, states_[at->second])) {
    states_[at->second] = state;
  }
  return true;
}

void StatePool::Grow() {
  room_ = GrownRoom();
  states_.reserve(room_);
  cells_.reserve(room_);
}

void StatePool::Thin(Bound bound) {
  if (room_ <= kLeastRoom) return;
  room_ /= 2;
  cells_ = {};
  states_.erase(std::remove_if(states_.begin(), states_.end(),
                               [&](JointState& state) { return !bound(&state); }),
                states_.end());
  if (states_.size() > room_) {
    const auto end = states_.begin() + static_cast<std::ptrdiff_t>(room_);
    std::nth_element(states_.begin(), end, states_.end(), ComesBefore);
    states_.erase(end, states_.end());
  }
  std::vector<JointState> states;
  states.reserve(room_);
  states.assign(states_.begin(), states_.end());
  states_ = std::move(states);
  cells_.reserve(room_);
  for (size_t s = 0; s < states_.size(); ++s) {
    cells_.emplace(CellOf(states_[s]), static_cast<uint32_t>(s));
  }
}

absl::StatusOr<std::vector<JointState>> StatePool::Take(size_t most, Bound bound, StopPoll* poll) {
  std::vector<JointState> states = std::move(states_);
  states_ = {};
  cells_ = {};
  room_ = 0;
  states.erase(std::remove_if(states.begin(), states.end(),
                              [&](JointState& state) { return !bound(&state); }),
               states.end());
  absl::Status status = poll->Spend(static_cast<int64_t>(states.size()) * 64);
  if (!status.ok()) return status;
  std::sort(states.begin(), states.end(), ComesBefore);
  std::vector<JointState> kept;
  kept.reserve(std::min(most, states.size()));
  // What dominated once does so again more often than not: it is asked first.
  std::vector<uint32_t> order;
  order.reserve(std::min(most, states.size()));
  for (const JointState& state : states) {
    if (kept.size() == most) break;
    const auto by = std::find_if(order.begin(), order.end(), [&](uint32_t other) {
      return Dominates(kept[other], state, grid_.host_limited);
    });
    status = poll->Spend(by - order.begin() + 1);
    if (!status.ok()) return status;
    if (by != order.end()) {
      std::rotate(order.begin(), by, by + 1);
      continue;
    }
    order.push_back(static_cast<uint32_t>(kept.size()));
    kept.push_back(state);
  }
  return kept;
}

}  // namespace stowage
