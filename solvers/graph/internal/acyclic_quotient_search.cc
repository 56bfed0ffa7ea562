#include "solvers/graph/internal/acyclic_quotient_search.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>

#include "solvers/graph/internal/polled_loops.h"
#include "solvers/model/index.h"

namespace stowage {
namespace {

// Choosing the next vertex looks at so many that are ready, the longest waiting first.
constexpr size_t kChoices = 64;

// Counts, for every vertex, the inputs that it alone is still to read.
class ClosedInputs {
 public:
  explicit ClosedInputs(const CheckpointGraph& graph)
      : graph_(graph),
        readers_(Index(graph.size()), 0),
        all_readers_(Index(graph.size()), 0),
        closes_(Index(graph.size()), 0) {
    for (int u = 0; u < graph.size(); ++u) {
      readers_[Index(u)] = static_cast<int>(graph.readers(u).size());
      for (const int v : graph.readers(u)) all_readers_[Index(u)] ^= v;
      if (readers_[Index(u)] == 1) ++closes_[Index(all_readers_[Index(u)])];
    }
  }

  int of(int v) const { return closes_[Index(v)]; }

  void Pass(int v) {
    for (const int u : graph_.inputs(v)) {
      all_readers_[Index(u)] ^= v;
      if (--readers_[Index(u)] == 1) ++closes_[Index(all_readers_[Index(u)])];
    }
  }

 private:
  const CheckpointGraph& graph_;
  std::vector<int> readers_;      // how many are to come
  std::vector<int> all_readers_;  // that are to come, in one word: the last one is its name
  std::vector<int> closes_;
};

// Takes what closes most; among equals what was made ready last, which keeps to one branch.
absl::StatusOr<std::vector<int>> NarrowOrder(const CheckpointGraph& graph, StopPoll* poll) {
  std::vector<int> waits(Index(graph.size()));
  for (int v = 0; v < graph.size(); ++v) {
    waits[Index(v)] = static_cast<int>(graph.inputs(v).size());
  }
  ClosedInputs closes(graph);
  std::vector<int> order, ready = {graph.source()};
  while (!ready.empty()) {
    const size_t first = ready.size() > kChoices ? ready.size() - kChoices : 0;
    size_t best = ready.size() - 1;
    for (size_t i = best; i-- > first;) {
      if (closes.of(ready[i]) > closes.of(ready[best])) best = i;
    }
    const int v = ready[best];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
    order.push_back(v);
    closes.Pass(v);
    const auto next = graph.readers(v);
    for (size_t i = next.size(); i-- > 0;) {
      if (--waits[Index(next[i])] == 0) ready.push_back(next[i]);
    }
    const absl::Status status =
        poll->Spend(static_cast<int64_t>(kChoices + graph.inputs(v).size() + next.size()));
    if (!status.ok()) return status;
  }
  return order;
}

// Nothing where too many are open at once.
absl::StatusOr<std::optional<CutOrder>> WithSlots(const CheckpointGraph& graph,
                                                  const std::vector<int>& order, StopPoll* poll) {
  CutOrder result;
  std::vector<int>& slot = result.slot;
  slot.resize(Index(graph.size()));
  std::vector<int> readers(Index(graph.size()));
  for (int v = 0; v < graph.size(); ++v) {
    readers[Index(v)] = static_cast<int>(graph.readers(v).size());
  }
  uint64_t used = 0;
  for (const int v : order) {
    if (~used == 0) return std::nullopt;
    CutStep step = {v, __builtin_ctzll(~used), 0, 0};
    slot[Index(v)] = step.slot;
    used |= SlotBit(step.slot);
    result.widest = std::max(result.widest, __builtin_popcountll(used));
    for (const int u : graph.inputs(v)) {
      step.reads |= SlotBit(slot[Index(u)]);
      if (--readers[Index(u)] == 0) step.ends |= SlotBit(slot[Index(u)]);
    }
    if (graph.readers(v).empty()) step.ends |= SlotBit(step.slot);
    used &= ~step.ends;
    result.steps.push_back(step);
    const absl::Status status = poll->Spend(static_cast<int64_t>(8 + graph.inputs(v).size()));
    if (!status.ok()) return status;
  }
  return result;
}

}  // namespace

absl::StatusOr<std::optional<CutOrder>> MakeCutOrder(const CheckpointGraph& graph, StopPoll* poll) {
  std::vector<int> own(Index(graph.size()));
  std::iota(own.begin(), own.end(), 0);
  absl::StatusOr<std::optional<CutOrder>> as_given = WithSlots(graph, own, poll);
  if (!as_given.ok()) return as_given;
  const absl::StatusOr<std::vector<int>> order = NarrowOrder(graph, poll);
  if (!order.ok()) return order.status();
  absl::StatusOr<std::optional<CutOrder>> narrow = WithSlots(graph, *order, poll);
  if (!narrow.ok()) return narrow;
  const auto widest = [](const std::optional<CutOrder>& made) {
    return made ? made->widest : CutOrder::kMaxSlots + 1;
  };
  return widest(*narrow) < widest(*as_given) ? narrow : as_given;
}

namespace {

constexpr int kNarrowings = 256;

absl::StatusOr<std::vector<int>> HeaviestPath(const CheckpointGraph& graph, StopPoll* poll) {
  std::vector<int64_t> heaviest(Index(graph.size()), 0);
  std::vector<int> before(Index(graph.size()), kNoIndex);
  const auto reach = [&](int v) {
    for (const int u : graph.inputs(v)) {
      int& known = before[Index(v)];
      if (known == kNoIndex || heaviest[Index(u)] > heaviest[Index(known)]) known = u;
    }
    const int u = before[Index(v)];
    heaviest[Index(v)] = graph.bytes(v).value() + (u == kNoIndex ? 0 : heaviest[Index(u)]);
  };
  const absl::Status status = PolledVertices(graph, reach, poll);
  if (!status.ok()) return status;
  std::vector<int> path;
  for (int v = graph.target(); v != kNoIndex; v = before[Index(v)]) path.push_back(v);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

absl::StatusOr<CheckpointPathBound> CheckpointPathBound::Create(const CheckpointGraph& graph,
                                                                StopPoll* poll) {
  absl::StatusOr<std::vector<int>> path = HeaviestPath(graph, poll);
  if (!path.ok()) return path.status();
  CheckpointPathBound bound;
  bound.path_ = *std::move(path);
  const auto kept = [&graph](int v) {
    return v == graph.source() || v == graph.target() || graph.must_keep(v);
  };
  for (int v = 0; v < graph.size(); ++v) {
    if (kept(v)) bound.kept_off_path_ += graph.bytes(v).value();
  }
  for (const int v : bound.path_) {
    bound.bytes_.push_back(graph.bytes(v).value());
    bound.must_keep_.push_back(kept(v));
    if (kept(v)) bound.kept_off_path_ -= graph.bytes(v).value();
  }
  const absl::Status status = poll->Spend(int64_t{graph.size()} << 3);
  if (!status.ok()) return status;
  return bound;
}

std::vector<int64_t> CheckpointPathBound::LeastCheckpoints(int64_t limit) const {
  const size_t length = path_.size();
  std::vector<int64_t> least(length + 1, 0);
  std::vector<int64_t> after(length + 1, 0);  // bytes of path()[i..]
  // Where the next checkpoint may be: rising positions, from the back, of falling cost.
  std::vector<size_t> window(length);
  size_t first = 0, last = 0;
  const auto cost = [&](size_t k) { return bytes_[k] + least[k + 1]; };
  for (size_t i = length; i-- > 0;) {
    after[i] = after[i + 1] + bytes_[i];
    if (must_keep_[i]) first = last;
    while (last > first && cost(window[last - 1]) >= cost(i)) --last;
    window[last++] = i;
    while (after[i] - after[window[first]] > limit) ++first;
    least[i] = cost(window[first]);
  }
  return least;
}

absl::StatusOr<int64_t> CheckpointPathBound::LeastObjective(StopPoll* poll) const {
  // Intervals (above, limit] of the largest run, by what every set in them costs at least.
  using Interval = std::tuple<int64_t, int64_t, int64_t>;  // cost, above, limit
  std::priority_queue<Interval, std::vector<Interval>, std::greater<Interval>> open;
  int64_t total = 0;
  for (const int64_t bytes : bytes_) total += bytes;
  const auto add = [&](int64_t above, int64_t limit) {
    if (limit > above) open.push({LeastCheckpoints(limit).front() + above + 1, above, limit});
  };
  add(-1, total);
  for (int i = 0; i < kNarrowings; ++i) {
    const auto [cost, above, limit] = open.top();
    if (limit - above <= std::max<int64_t>(cost / 1000, 1)) break;
    open.pop();
    const absl::Status status = poll->Spend(8 * static_cast<int64_t>(path_.size()));
    if (!status.ok()) return status;
    const int64_t middle = above + (limit - above) / 2;
    add(above, middle);
    add(middle, limit);
  }
  return std::get<0>(open.top()) + kept_off_path_;
}

namespace {

uint64_t Mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 32);
}

}  // namespace

void CutState::Keep(const CheckpointGraph& graph, const CutOrder& order, const CutStep& step) {
  checkpoint_bytes_ += graph.bytes(step.vertex).value();
  for (Segment& segment : open_) {
    if (((segment.members | segment.reach) & step.reads) != 0) segment.reach |= SlotBit(step.slot);
  }
  if (graph.needs_inputs(step.vertex)) AddNeededInputs(graph, order, step.vertex);
  Close(step.ends);
}

void CutState::AddNeededInputs(const CheckpointGraph& graph, const CutOrder& order, int v) {
  const auto held = [&](uint64_t slots) {
    int64_t bytes = 0;
    for (const int u : graph.inputs(v)) {
      const uint64_t slot = SlotBit(order.slot[static_cast<size_t>(u)]);
      if ((slot & slots) != 0) bytes += graph.bytes(u).value();
    }
    return bytes;
  };
  uint64_t reads = 0, all = 0, fed = 0;
  for (const int u : graph.inputs(v)) reads |= SlotBit(order.slot[static_cast<size_t>(u)]);
  int count = 0;
  for (const Segment& segment : open_) {
    all |= segment.members;
    if ((segment.members & reads) == 0) continue;
    fed |= segment.members;
    ++count;
  }
  if (count < 2) return;
  const int64_t bytes = held(all);
  for (Segment& segment : open_) {
    if ((segment.members & reads) == 0) continue;
    segment.bytes += bytes - held(segment.members);
    largest_ = std::max(largest_, segment.bytes);
  }
  needs_.push_back({fed, bytes});
}

bool CutState::Join(const CheckpointGraph& graph, const CutStep& step) {
  Segment whole = {SlotBit(step.slot), 0, 0};
  absl::int128 bytes = graph.bytes(step.vertex).value();
  for (const Segment& segment : open_) {
    if ((segment.members & step.reads) == 0) continue;
    whole.members |= segment.members;
    whole.reach |= segment.reach;
    bytes += segment.bytes;
  }
  const uint64_t waits = whole.members | step.reads;
  if ((whole.reach & waits) != 0) return false;
  if (!needs_.empty()) bytes -= UniteNeeds(step.reads, whole.members);
  // What segments count of others may sum up to more than there is, or than an int64_t holds.
  whole.bytes = static_cast<int64_t>(std::min<absl::int128>(bytes, kMaxTotal));
  const auto joined = [&step](const Segment& s) { return (s.members & step.reads) != 0; };
  open_.erase(std::remove_if(open_.begin(), open_.end(), joined), open_.end());
  for (Segment& segment : open_) {
    if ((segment.reach & waits) != 0) segment.reach |= whole.members | whole.reach;
  }
  largest_ = std::max(largest_, whole.bytes);
  open_.push_back(whole);
  Close(step.ends);
  return true;
}

absl::int128 CutState::UniteNeeds(uint64_t slots, uint64_t members) {
  absl::int128 twice = 0;
  for (Need& need : needs_) {
    const auto parts = std::count_if(open_.begin(), open_.end(), [&](const Segment& segment) {
      return (segment.members & slots) != 0 && (segment.members & need.segments) != 0;
    });
    if (parts == 0) continue;
    need.segments |= members;
    twice += absl::int128(parts - 1) * need.bytes;
  }
  return twice;
}

void CutState::Close(uint64_t slots) {
  for (Segment& segment : open_) {
    segment.members &= ~slots;
    segment.reach &= ~slots;
  }
  const auto closed = [](const Segment& segment) { return segment.members == 0; };
  open_.erase(std::remove_if(open_.begin(), open_.end(), closed), open_.end());
  const auto lowest = [](const Segment& segment) { return segment.members & -segment.members; };
  std::sort(open_.begin(), open_.end(),
            [&](const Segment& a, const Segment& b) { return lowest(a) < lowest(b); });
  const auto settled = [this](const Need& need) {
    return std::count_if(open_.begin(), open_.end(), [&](const Segment& segment) {
             return (segment.members & need.segments) != 0;
           }) < 2;
  };
  for (Need& need : needs_) need.segments &= ~slots;
  needs_.erase(std::remove_if(needs_.begin(), needs_.end(), settled), needs_.end());
}

double CutState::open_bytes() const {
  double sum = 0;
  for (const Segment& segment : open_) sum += static_cast<double>(segment.bytes);
  return sum;
}

uint64_t CutState::Hash() const {
  uint64_t hash = open_.size();
  for (const Segment& segment : open_) hash = Mix(Mix(hash, segment.members), segment.reach);
  for (const Need& need : needs_) {
    hash = Mix(Mix(hash, need.segments), static_cast<uint64_t>(need.bytes));
  }
  return hash;
}

bool CutState::AgreesWith(const CutState& other) const {
  return std::equal(open_.begin(), open_.end(), other.open_.begin(), other.open_.end(),
                    [](const Segment& a, const Segment& b) {
                      return a.members == b.members && a.reach == b.reach;
                    }) &&
         std::equal(needs_.begin(), needs_.end(), other.needs_.begin(), other.needs_.end(),
                    [](const Need& a, const Need& b) {
                      return a.segments == b.segments && a.bytes == b.bytes;
                    });
}

bool CutState::Dominates(const CutState& other) const {
  return checkpoint_bytes_ <= other.checkpoint_bytes_ && largest_ <= other.largest_ &&
         std::equal(open_.begin(), open_.end(), other.open_.begin(),
                    [](const Segment& a, const Segment& b) { return a.bytes <= b.bytes; });
}

namespace {

constexpr uint32_t kNoState = std::numeric_limits<uint32_t>::max();
// Making a state takes as long as comparing so many.
constexpr int64_t kWorkPerState = 20;

// The state a state came from, and whether the vertex in between was kept.
struct Origin {
  uint32_t parent;
  bool kept;
};

// The states after one step, the dominated ones left out.
class Layer {
 public:
  size_t size() const { return states_.size(); }
  const CutState& state(size_t i) const { return states_[i]; }
  const std::vector<Origin>& origins() const { return origins_; }

  void Clear(size_t expected) {
    states_.clear();
    origins_.clear();
    next_.clear();
    free_.clear();
    size_t buckets = 16;
    while (buckets < 2 * expected) buckets *= 2;
    heads_.assign(buckets, kNoState);
  }

  // Returns how many states it was compared with.
  int64_t Add(CutState state, Origin origin) {
    const size_t bucket = state.Hash() & (heads_.size() - 1);
    int64_t compared = 1;
    for (uint32_t* link = &heads_[bucket]; *link != kNoState; ++compared) {
      const uint32_t i = *link;
      const bool agrees = states_[i].AgreesWith(state);
      if (agrees && states_[i].Dominates(state)) return compared;
      if (agrees && state.Dominates(states_[i])) {
        free_.push_back(i);
        *link = next_[i];
      } else {
        link = &next_[i];
      }
    }
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(states_.size()));
      states_.push_back(state);
      origins_.push_back(origin);
      next_.push_back(kNoState);
    }
    const uint32_t place = free_.back();
    free_.pop_back();
    states_[place] = std::move(state);
    origins_[place] = origin;
    next_[place] = std::exchange(heads_[bucket], place);
    return compared;
  }

  // Ends the additions.
  void Settle() {
    std::sort(free_.begin(), free_.end(), std::greater<>());
    for (const uint32_t i : free_) {
      states_[i] = std::move(states_.back());
      origins_[i] = origins_.back();
      states_.pop_back();
      origins_.pop_back();
    }
  }

  // Keeps the states of the smallest ranks, the earlier ones among equals.
  template <class Rank>
  void Cut(size_t width, const Rank& rank) {
    std::vector<std::pair<double, uint32_t>> ranks(size());
    for (uint32_t i = 0; i < ranks.size(); ++i) ranks[i] = {rank(states_[i]), i};
    std::nth_element(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(width),
                     ranks.end());
    ranks.resize(width);
    std::sort(ranks.begin(), ranks.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    for (size_t i = 0; i < width; ++i) {
      states_[i] = std::move(states_[ranks[i].second]);
      origins_[i] = origins_[ranks[i].second];
    }
    states_.erase(states_.begin() + static_cast<std::ptrdiff_t>(width), states_.end());
    origins_.resize(width);
  }

 private:
  std::vector<CutState> states_;
  std::vector<Origin> origins_;
  std::vector<uint32_t> heads_;
  std::vector<uint32_t> next_;  // of the same bucket
  std::vector<uint32_t> free_;  // places of dominated states
};

}  // namespace

CutSearch::CutSearch(const CheckpointGraph& graph, const CheckpointPathBound& bound, CutOrder order)
    : graph_(graph), bound_(bound), order_(std::move(order)) {
  const size_t steps = order_.steps.size();
  path_from_.assign(steps + 1, bound.path().size());
  kept_from_.assign(steps + 1, 0);
  std::vector<bool> on_path(steps, false);
  for (const int v : bound.path()) on_path[Index(v)] = true;
  for (size_t i = steps; i-- > 0;) {
    const int v = order_.steps[i].vertex;
    path_from_[i] = path_from_[i + 1] - (on_path[Index(v)] ? 1 : 0);
    const bool paid = !on_path[Index(v)] && graph.must_keep(v);
    kept_from_[i] = kept_from_[i + 1] + (paid ? graph.bytes(v).value() : 0);
  }
}

absl::StatusOr<CutSearchResult> CutSearch::Run(const CutSearchLimits& limits,
                                               StopPoll* poll) const {
  const std::vector<int64_t> least = bound_.LeastCheckpoints(limits.limit);
  std::vector<std::vector<Origin>> trail;
  trail.reserve(order_.steps.size());
  Layer layer, next;
  layer.Clear(1);
  layer.Add(CutState(limits.above), {kNoState, false});
  CutSearchResult result;
  result.complete = true;
  for (size_t i = 0; i < order_.steps.size(); ++i) {
    const CutStep& step = order_.steps[i];
    const int64_t rest = least[path_from_[i + 1]] + kept_from_[i + 1];
    next.Clear(2 * layer.size());
    int64_t work = 0;
    const auto add = [&](CutState state, Origin origin) {
      if (state.largest() > limits.limit) return;
      if (state.checkpoint_bytes() + rest + state.largest() >= limits.known) return;
      work += next.Add(std::move(state), origin);
    };
    const int v = step.vertex;
    const bool must = v == graph_.source() || v == graph_.target() || graph_.must_keep(v);
    for (uint32_t s = 0; s < layer.size(); ++s) {
      CutState kept = layer.state(s);
      if (!must) {
        CutState joined = kept;
        if (joined.Join(graph_, step)) add(std::move(joined), {s, false});
      }
      kept.Keep(graph_, order_, step);
      add(std::move(kept), {s, true});
      work += 2 * kWorkPerState;
    }
    result.work += work;
    const absl::Status status = poll->Spend(2 * work);
    if (!status.ok()) return status;
    next.Settle();
    if (next.size() == 0) return result;
    if (result.work > limits.work) {
      result.complete = false;
      return result;
    }
    if (next.size() > limits.width) {
      result.complete = false;
      next.Cut(limits.width, [&](const CutState& state) {
        return static_cast<double>(state.checkpoint_bytes() + state.largest()) +
               limits.segment_rate * state.open_bytes();
      });
    }
    trail.push_back(next.origins());
    std::swap(layer, next);
  }
  // All segments are closed, so that one state is left per trade between the two sums.
  uint32_t best = 0;
  const auto objective = [&layer](uint32_t s) {
    return layer.state(s).checkpoint_bytes() + layer.state(s).largest();
  };
  for (uint32_t s = 1; s < layer.size(); ++s) {
    if (objective(s) < objective(best)) best = s;
  }
  result.objective = objective(best);
  for (size_t i = trail.size(); i-- > 0;) {
    const Origin origin = trail[i][best];
    if (origin.kept) result.checkpoints.push_back(order_.steps[i].vertex);
    best = origin.parent;
  }
  std::sort(result.checkpoints.begin(), result.checkpoints.end());
  return result;
}

namespace {

constexpr size_t kBands = 40;
constexpr double kBandRatio = 0.85;
constexpr size_t kFirstWidth = 8;
// A search of twice the width takes about so many times the work.
constexpr int64_t kGrowth = 3;
// In the first round sets that are worse than the best by this share tell promising bands.
constexpr int64_t kSlackShare = 8;

}  // namespace

BandSearch::BandSearch(const CheckpointGraph& graph, const CheckpointPathBound& bound,
                       const CutSearch& search, CheckpointAnswer* answer)
    : graph_(graph), search_(search), answer_(answer) {
  for (int64_t limit = best() - 1, above = limit; limit >= 0 && above > 0; limit = above) {
    above = static_cast<int64_t>(static_cast<double>(limit) * kBandRatio);
    if (bands_.size() + 1 == kBands) above = 0;
    const int64_t bytes = bound.LeastCheckpoints(limit).front() + bound.kept_off_path();
    bands_.push_back({above, limit, bytes + above, std::numeric_limits<int64_t>::max(), 0});
  }
}

absl::Status BandSearch::Run(int64_t work, StopPoll* poll,
                             const std::function<void(double)>& progress) {
  work_left_ = work;
  size_t share = bands_.size();
  Sort();
  for (size_t width = kFirstWidth; !bands_.empty(); width *= 2) {
    bool searched = false;
    const int64_t slack = width == kFirstWidth ? best() / kSlackShare : 0;
    for (size_t i = 0; i < std::min(share, bands_.size()); ++i) {
      Band& band = bands_[i];
      if (kGrowth * band.work > work_left_) continue;
      searched = true;
      const absl::Status status = Search(best() + slack, width, &band, poll);
      if (!status.ok()) return status;
      if (progress) progress(1.0 - static_cast<double>(work_left_) / static_cast<double>(work));
    }
    if (!searched) break;
    Sort();
    share = std::max<size_t>(share / 2, 1);
  }
  Bytes bound = answer_->set.objective();
  for (const Band& band : bands_) bound = std::min(bound, Bytes(band.bound));
  answer_->lower_bound = std::max(answer_->lower_bound, bound);
  return absl::OkStatus();
}

absl::Status BandSearch::Search(int64_t known, size_t width, Band* band, StopPoll* poll) {
  const CheckpointSet& set = answer_->set;
  CutSearchLimits limits;
  limits.above = band->above;
  limits.limit = std::min(band->limit, known);
  limits.known = known;
  limits.width = width;
  const auto recomputed = static_cast<double>((graph_.total() - set.checkpoint_bytes).value());
  limits.segment_rate =
      static_cast<double>(set.checkpoint_bytes.value()) / std::max(recomputed, 1.0);
  limits.work = work_left_;
  absl::StatusOr<CutSearchResult> result = search_.Run(limits, poll);
  if (!result.ok()) return result.status();
  band->work = result->work;
  work_left_ = std::max<int64_t>(work_left_ - result->work, 0);
  if (!result->checkpoints.empty()) {
    absl::StatusOr<CheckpointSet> found = ValidateCheckpoints(
        graph_, std::move(result->checkpoints), SegmentRule::kSeveralEndPoints, nullptr, poll);
    if (!found.ok()) return found.status();
    band->found = std::min(band->found, found->objective().value());
    if (IsBetter(*found, answer_->set)) answer_->set = *std::move(found);
  }
  if (result->complete) band->bound = std::max(band->bound, std::min(known, band->found));
  return absl::OkStatus();
}

void BandSearch::Sort() {
  const auto closed = [this](const Band& band) { return band.bound >= best(); };
  bands_.erase(std::remove_if(bands_.begin(), bands_.end(), closed), bands_.end());
  std::stable_sort(bands_.begin(), bands_.end(),
                   [](const Band& a, const Band& b) { return a.found < b.found; });
}

}  // namespace stowage
