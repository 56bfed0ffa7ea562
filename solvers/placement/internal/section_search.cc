#include "solvers/placement/internal/section_search.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "solvers/model/index.h"

namespace stowage {
namespace {

constexpr int64_t kNowhere = -1;
// Orders of urgency that take turns.
constexpr int kWays = 3;
constexpr size_t kMostBlocks = 2048;

std::vector<int64_t> TimesOf(const std::vector<UnitBlock>& blocks) {
  std::vector<int64_t> times;
  for (const UnitBlock& block : blocks) times.push_back(block.begin);
  for (const UnitBlock& block : blocks) times.push_back(block.end);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

}  // namespace

bool SectionSearch::Suits(const std::vector<UnitBlock>& blocks) {
  return !blocks.empty() && blocks.size() <= kMostBlocks;
}

SectionSearch::SectionSearch(const std::vector<UnitBlock>& blocks, const StopToken* stop)
    : blocks_(blocks), stop_(stop) {
  FindSections();
  FindNeighbours();
}

void SectionSearch::FindSections() {
  const std::vector<int64_t> times = TimesOf(blocks_);
  const auto at = [&times](int64_t time) {
    return static_cast<int>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  for (const UnitBlock& block : blocks_) spans_.emplace_back(at(block.begin), at(block.end));
  members_.resize(times.size() - 1);
}

void SectionSearch::FindNeighbours() {
  neighbours_.resize(blocks_.size());
  for (size_t i = 0; i < blocks_.size(); ++i) {
    for (int s = spans_[i].first; s < spans_[i].second; ++s) {
      members_[Index(s)].push_back(static_cast<int>(i));
    }
    for (size_t j = 0; j < i; ++j) {
      if (spans_[j].first >= spans_[i].second || spans_[i].first >= spans_[j].second) continue;
      neighbours_[i].push_back(static_cast<int>(j));
      neighbours_[j].push_back(static_cast<int>(i));
    }
  }
}

void SectionSearch::Reset() {
  offsets_.assign(blocks_.size(), kNowhere);
  ranks_.assign(blocks_.size(), 0);
  lows_.assign(blocks_.size(), 0);
  floors_.assign(members_.size(), 0);
  rests_.assign(members_.size(), 0);
  links_.assign(members_.size(), 0);
  is_unsettled_.assign(members_.size(), 0);
  changes_.clear();
  for (size_t i = 0; i < blocks_.size(); ++i) {
    for (int s = spans_[i].first; s < spans_[i].second; ++s) {
      rests_[Index(s)] += blocks_[i].size;
      if (s + 1 < spans_[i].second) ++links_[Index(s)];
    }
  }
}

// The most urgent first: by the fullest section that a block lies in, by the number of its sections, by that and its size.
void SectionSearch::Rank(std::vector<int>* open) {
  std::vector<std::tuple<double, double, double, int>> keys;
  for (const int block : *open) {
    const auto life = static_cast<double>(blocks_[Index(block)].end - blocks_[Index(block)].begin);
    const auto size = static_cast<double>(blocks_[Index(block)].size);
    const double area = life * size;
    const auto [begin, end] = spans_[Index(block)];
    const auto sections = static_cast<double>(end - begin);
    const auto most = std::max_element(rests_.begin() + begin, rests_.begin() + end);
    const auto full = static_cast<double>(*most);
    if (way_ == 0) keys.emplace_back(-full, -life, -area, block);
    if (way_ == 1) keys.emplace_back(-sections, -area, -full, block);
    if (way_ == 2) keys.emplace_back(-sections * size, -area, -full, block);
  }
  std::sort(keys.begin(), keys.end());
  for (size_t rank = 0; rank < keys.size(); ++rank) {
    (*open)[rank] = std::get<3>(keys[rank]);
    Set(&ranks_[Index((*open)[rank])], static_cast<int64_t>(rank));
  }
}

SectionSearch::Outcome SectionSearch::Fit(int64_t target, int64_t effort) {
  target_ = target;
  left_ = told_ = effort;
  for (auto nodes = static_cast<int64_t>(blocks_.size());; nodes *= 2) {
    for (way_ = 0; way_ < kWays; ++way_) {
      Reset();
      if (std::any_of(rests_.begin(), rests_.end(),
                      [target](int64_t rest) { return rest > target; }))
        return Outcome::kNone;
      std::vector<int> open(blocks_.size());
      std::iota(open.begin(), open.end(), 0);
      nodes_ = nodes;
      const Outcome outcome = SearchParts(Split(open, 0, static_cast<int>(members_.size())));
      if (outcome != Outcome::kSpent || left_ <= 0 || stopped_) return outcome;
    }
  }
}

// At the sections that no open block links to the next one.
std::vector<SectionSearch::Part> SectionSearch::Split(const std::vector<int>& open, int first,
                                                      int last) const {
  std::vector<Part> parts;
  for (int begin = first; begin < last;) {
    int end = begin + 1;
    while (end < last && links_[Index(end - 1)] > 0) ++end;
    Part part{{}, begin, end};
    if (rests_[Index(begin)] > 0) {
      for (const int block : open) {
        const int at = spans_[Index(block)].first;
        if (offsets_[Index(block)] == kNowhere && begin <= at && at < end)
          part.open.push_back(block);
      }
      parts.push_back(std::move(part));
    }
    begin = end;
  }
  // A small one fails sooner.
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.open.size() < b.open.size(); });
  return parts;
}

SectionSearch::Outcome SectionSearch::SearchParts(std::vector<Part> parts) {
  const size_t changes = changes_.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    Rank(&parts[i].open);
    const Outcome outcome = Search(parts[i], 0, 0);
    if (outcome == Outcome::kFound) continue;
    for (size_t found = 0; found < i; ++found) {
      for (const int block : parts[found].open) Take(block);
    }
    Undo(changes);
    return outcome;
  }
  return Outcome::kFound;
}

// Puts open blocks at their lows, none before (offset, rank) of the block put last.
SectionSearch::Outcome SectionSearch::Search(const Part& part, int64_t offset, int64_t rank) {
  if (part.open.empty()) return Outcome::kFound;
  if (!Spend(static_cast<int64_t>(part.open.size()))) return Outcome::kSpent;
  // Whatever starts as high as this or higher leaves a gap that some block fits in.
  int64_t lowest_top = std::numeric_limits<int64_t>::max();
  for (const int block : part.open)
    lowest_top = std::min(lowest_top, lows_[Index(block)] + blocks_[Index(block)].size);
  std::vector<Candidate> candidates;
  for (const int block : part.open) {
    const Candidate candidate{lows_[Index(block)], ranks_[Index(block)], block};
    if (candidate.offset >= lowest_top) continue;
    if (std::tie(candidate.offset, candidate.rank) < std::tie(offset, rank)) continue;
    candidates.push_back(candidate);
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return std::tie(a.offset, a.rank) < std::tie(b.offset, b.rank);
  });
  const size_t changes = changes_.size();
  for (const Candidate& candidate : candidates) {
    const Outcome outcome = Try(part, candidate);
    if (outcome != Outcome::kNone) return outcome;
    if (left_ <= 0) return Outcome::kSpent;
    if (!Skip(candidate.block)) break;
  }
  Undo(changes);
  return Outcome::kNone;
}

SectionSearch::Outcome SectionSearch::Try(const Part& part, const Candidate& candidate) {
  const size_t changes = changes_.size();
  Outcome outcome = Outcome::kNone;
  if (Put(candidate.block, candidate.offset, part)) {
    const auto [begin, end] = spans_[Index(candidate.block)];
    bool split = false;
    for (int s = begin; s + 1 < end; ++s) split = split || links_[Index(s)] == 0;
    if (split) {
      outcome = SearchParts(Split(part.open, part.first, part.last));
    } else {
      Part rest{{}, part.first, part.last};
      rest.open.reserve(part.open.size());
      for (const int block : part.open) {
        if (block != candidate.block) rest.open.push_back(block);
      }
      outcome = Search(rest, candidate.offset, candidate.rank);
    }
  }
  if (outcome == Outcome::kFound) return outcome;
  Take(candidate.block);
  Undo(changes);
  return outcome;
}

// Whether all that is open may still fit.
bool SectionSearch::Put(int block, int64_t offset, const Part& part) {
  const int64_t size = blocks_[Index(block)].size;
  offsets_[Index(block)] = offset;
  const auto [begin, end] = spans_[Index(block)];
  for (int s = begin; s < end; ++s) {
    rests_[Index(s)] -= size;
    if (s + 1 < end) --links_[Index(s)];
    if (is_unsettled_[Index(s)] == 0) unsettled_.push_back(s);
    is_unsettled_[Index(s)] = 1;
  }
  bool fits = true;
  for (const int other : neighbours_[Index(block)]) {
    if (offsets_[Index(other)] == kNowhere) fits = Lift(other, offset + size) && fits;
  }
  fits = SettleAll() && fits;
  for (int s = part.first; s < part.last && fits; ++s) {
    fits =
        rests_[Index(s)] == 0 || std::max(offset, floors_[Index(s)]) + rests_[Index(s)] <= target_;
  }
  left_ -= part.last - part.first;
  return fits;
}

// The opposite of Put, but for what Undo does.
void SectionSearch::Take(int block) {
  const auto [begin, end] = spans_[Index(block)];
  offsets_[Index(block)] = kNowhere;
  for (int s = begin; s < end; ++s) {
    rests_[Index(s)] += blocks_[Index(block)].size;
    if (s + 1 < end) ++links_[Index(s)];
  }
}

void SectionSearch::Undo(size_t changes) {
  while (changes_.size() > changes) {
    *changes_.back().value = changes_.back().before;
    changes_.pop_back();
  }
}

// An open block gets nowhere below the offset.
bool SectionSearch::Lift(int block, int64_t offset) {
  const int64_t before = lows_[Index(block)];
  if (before >= offset) return true;
  Set(&lows_[Index(block)], offset);
  const auto [begin, end] = spans_[Index(block)];
  left_ -= end - begin;
  for (int s = begin; s < end; ++s) {
    if (floors_[Index(s)] != before || is_unsettled_[Index(s)] != 0) continue;
    is_unsettled_[Index(s)] = 1;
    unsettled_.push_back(s);
  }
  return offset + blocks_[Index(block)].size <= target_;
}

bool SectionSearch::SettleAll() {
  bool fits = true;
  for (const int s : unsettled_) {
    is_unsettled_[Index(s)] = 0;
    fits = fits && Settle(s);
  }
  unsettled_.clear();
  return fits;
}

// The floor of a section whose open blocks have changed.
bool SectionSearch::Settle(int section) {
  int64_t floor = std::numeric_limits<int64_t>::max();
  for (const int block : members_[Index(section)]) {
    if (offsets_[Index(block)] == kNowhere) floor = std::min(floor, lows_[Index(block)]);
  }
  left_ -= static_cast<int64_t>(members_[Index(section)].size());
  if (floor == std::numeric_limits<int64_t>::max()) return true;
  if (floor != floors_[Index(section)]) Set(&floors_[Index(section)], floor);
  return floor + rests_[Index(section)] <= target_;
}

// A block that is not put at its low now waits until a block that it meets is put there or above. Whether it may.
bool SectionSearch::Skip(int block) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const int other : neighbours_[Index(block)]) {
    if (offsets_[Index(other)] == kNowhere) least = std::min(least, blocks_[Index(other)].size);
  }
  if (least == std::numeric_limits<int64_t>::max()) return false;
  const bool fits = Lift(block, lows_[Index(block)] + least);
  return SettleAll() && fits;
}

void SectionSearch::Set(int64_t* value, int64_t now) {
  changes_.push_back({value, *value});
  *value = now;
}

bool SectionSearch::Spend(int64_t steps) {
  left_ -= steps;
  --nodes_;
  if (!stop_.Spend(told_ - left_).ok()) stopped_ = true;
  told_ = left_;
  return nodes_ >= 0 && left_ > 0 && !stopped_;
}

}  // namespace stowage
