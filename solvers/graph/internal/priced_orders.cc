#include "solvers/graph/internal/priced_orders.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "solvers/model/index.h"

namespace stowage {

int RepeatedCut::AddArc(int from, int to) {
  const int arc = static_cast<int>(arcs_.size());
  arcs_.push_back({to, std::exchange(first_[Index(from)], arc), 0});
  arcs_.push_back({from, std::exchange(first_[Index(to)], arc + 1), 0});
  return arc;
}

absl::Status RepeatedCut::Solve(StopPoll* poll) {
  for (int64_t polled = looked_at_; Layer(); polled = looked_at_) {
    Block();
    absl::Status status = poll->Spend(looked_at_ - polled);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool RepeatedCut::Layer() {
  depth_.assign(first_.size(), -1);
  depth_[kSource] = 0;
  queue_.assign(1, kSource);
  for (size_t i = 0; i < queue_.size(); ++i) {
    const int node = queue_[i];
    for (int a = first_[Index(node)]; a >= 0; a = arcs_[Index(a)].next) {
      ++looked_at_;
      const Arc& arc = arcs_[Index(a)];
      if (arc.residual == 0 || depth_[Index(arc.to)] >= 0) continue;
      depth_[Index(arc.to)] = depth_[Index(node)] + 1;
      queue_.push_back(arc.to);
    }
  }
  return depth_[kSink] >= 0;
}

// Pushes along paths through the layers until there is none; paths may be as long as the graph is deep.
void RepeatedCut::Block() {
  next_ = first_;
  path_.clear();
  for (int node = kSource;;) {
    if (node == kSink) {
      int64_t residual = kUncut;
      for (const int a : path_) residual = std::min(residual, arcs_[Index(a)].residual);
      size_t kept = path_.size();
      for (size_t i = path_.size(); i-- > 0;) {
        arcs_[Index(path_[i])].residual -= residual;
        arcs_[Index(path_[i] ^ 1)].residual += residual;
        if (arcs_[Index(path_[i])].residual == 0) kept = i;
      }
      looked_at_ += static_cast<int64_t>(path_.size());
      node = arcs_[Index(path_[kept] ^ 1)].to;
      path_.resize(kept);
      continue;
    }
    int& a = next_[Index(node)];
    while (a >= 0 && (arcs_[Index(a)].residual == 0 ||
                      depth_[Index(arcs_[Index(a)].to)] != depth_[Index(node)] + 1)) {
      a = arcs_[Index(a)].next;
      ++looked_at_;
    }
    if (a >= 0) {
      path_.push_back(a);
      node = arcs_[Index(a)].to;
      continue;
    }
    if (path_.empty()) return;
    node = arcs_[Index(path_.back() ^ 1)].to;
    next_[Index(node)] = arcs_[Index(path_.back())].next;
    path_.pop_back();
  }
}

namespace {

// Capacities: so many to a nanosecond.
constexpr double kUnitsPerNano = 64.0;
// Of a vertex's bytes, at most this much more or less.
constexpr double kWeights = 0.05;
// Of how far the first read of what runs again has moved, so much counts at once.
constexpr double kReadsMove = 0.3;
// Where prices were too high they fall to this part.
constexpr double kFall = 0.8;
// Prices go half of Polyak's step: the time that is known is more than the least.
constexpr double kStep = 0.5;
// Of the forwards' time: a difference that is none.
constexpr double kNoGain = 0.002;
constexpr double kLeastGap = 0.001;
// What is made again is dropped again where holding it costs so many times what it takes.
constexpr double kDrop = 2.0;

// Evenly spread over [-1, 1), the same everywhere.
class Spread {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 40) / static_cast<double>(1 << 23) - 1.0;
  }

 private:
  uint64_t state_ = 12345;
};

}  // namespace

PricedOrders::PricedOrders(const OpGraph& graph, const StopToken* stop)
    : graph_(graph),
      evaluator_(graph),
      poll_(stop),
      cut_(NeededByRepeat(graph.size())),
      needed_(Index(graph.size()), false),
      prices_(Index(graph.size()), 0.0),
      price_before_(Index(graph.size()) + 1, 0.0),
      again_(Index(graph.size()), Again::kNot) {
  Spread spread;
  for (int v = 0; v < graph.size(); ++v) weight_.push_back(1.0 + kWeights * spread.Next());
  FindSteps();
  AddArcs();
}

void PricedOrders::FindSteps() {
  const int never = graph_.size();
  first_need_.assign(needed_.size(), never);
  const auto need = [&](int u, int step) {
    needed_[Index(u)] = true;
    first_need_[Index(u)] = std::min(first_need_[Index(u)], step);
  };
  for (int v = 0; v < graph_.size(); ++v) {
    for (const OpGraph::Input& input : graph_.inputs(v)) {
      if (input.backward_needs) need(input.vertex, StepOf(v));
    }
    if (graph_.costs(v).backward_needs_output) need(v, StepOf(v));
  }
  // What no backward needs may be read by repeats.
  std::vector<int> repeat(needed_.size(), never);
  for (int v = graph_.size(); v-- > 0;) {
    int& first = first_need_[Index(v)];
    if (!needed_[Index(v)]) {
      for (const int reader : graph_.readers(v)) first = std::min(first, repeat[Index(reader)]);
    }
    repeat[Index(v)] = std::min(first, graph_.costs(v).extra > 0 ? StepOf(v) : never);
  }
  read_at_.assign(first_need_.begin(), first_need_.end());
}

// What a backward needs is needed whatever the cut: its node is the source itself, and a repeat that reads it costs no
// more. So the network falls into small parts.
void PricedOrders::AddArcs() {
  for (int v = 0; v < graph_.size(); ++v) {
    Arcs arcs;
    arcs.held =
        cut_.AddArc(needed_[Index(v)] ? RepeatedCut::kSource : NeededByRepeat(v), MakesOutput(v));
    arcs.output_of_repeat = cut_.AddArc(MakesOutput(v), Repeats(v));
    arcs.output_time = cut_.AddArc(MakesOutput(v), RepeatedCut::kSink);
    arcs.repeat_time = cut_.AddArc(Repeats(v), RepeatedCut::kSink);
    arcs.extras_held = cut_.AddArc(RepeatedCut::kSource, Repeats(v));
    for (const OpGraph::Input& input : graph_.inputs(v)) {
      if (needed_[Index(input.vertex)]) continue;
      arcs.inputs.push_back(cut_.AddArc(Repeats(v), NeededByRepeat(input.vertex)));
    }
    arcs_.push_back(std::move(arcs));
  }
}

double PricedOrders::PriceUntil(double step) const {
  const auto whole = static_cast<size_t>(step);
  const double before = price_before_[whole];
  if (whole + 1 >= price_before_.size()) return before;
  return before + (step - static_cast<double>(whole)) * (price_before_[whole + 1] - before);
}

absl::Status PricedOrders::Choose() {
  for (size_t s = 0; s < prices_.size(); ++s) price_before_[s + 1] = price_before_[s] + prices_[s];
  const double most = static_cast<double>(RepeatedCut::kUncut / 8 / (graph_.size() + 1));
  const auto units = [most](double time) {
    return static_cast<int64_t>(std::min(time * kUnitsPerNano, most));
  };
  for (int v = 0; v < graph_.size(); ++v) {
    const OpGraph::Costs& costs = graph_.costs(v);
    const Arcs& arcs = arcs_[Index(v)];
    const int64_t stopped = costs.stops ? graph_.stopped(v).time : costs.forward_time;
    const auto held = [&](int64_t bytes, double until) {
      return units(weight_[Index(v)] * static_cast<double>(bytes) * PriceUntil(until));
    };
    const auto taking = [&](int64_t time) {
      return costs.recomputable ? units(static_cast<double>(time)) : RepeatedCut::kUncut;
    };
    cut_.Set(arcs.held, held(costs.output, read_at_[Index(v)]));
    cut_.Set(arcs.output_of_repeat, RepeatedCut::kUncut);
    cut_.Set(arcs.output_time, taking(costs.forward_time - stopped));
    cut_.Set(arcs.repeat_time, taking(stopped));
    cut_.Set(arcs.extras_held, held(costs.extra, StepOf(v)));
    for (const int input : arcs.inputs) cut_.Set(input, RepeatedCut::kUncut);
  }
  absl::Status status = cut_.Solve(&poll_);
  if (!status.ok()) return status;
  for (int v = 0; v < graph_.size(); ++v) {
    again_[Index(v)] = !cut_.OnSourceSide(Repeats(v))      ? Again::kNot
                       : cut_.OnSourceSide(MakesOutput(v)) ? Again::kWhole
                                                           : Again::kForExtras;
  }
  return absl::OkStatus();
}

// A cut knows no order of repeats: what one reads that comes early has to be there early. With the repeats as they are,
// that is when; half way there, or prices and repeats would take turns.
void PricedOrders::NoteReads() {
  const int never = graph_.size();
  std::vector<int> repeat(needed_.size(), never);
  for (int v = graph_.size(); v-- > 0;) {
    int read = needed_[Index(v)] ? first_need_[Index(v)] : never;
    for (const int reader : graph_.readers(v)) {
      if (again_[Index(reader)] != Again::kNot) read = std::min(read, repeat[Index(reader)]);
    }
    if (again_[Index(v)] == Again::kWhole) repeat[Index(v)] = read;
    if (graph_.costs(v).extra > 0) repeat[Index(v)] = std::min(repeat[Index(v)], StepOf(v));
    const int now = std::min(read, first_need_[Index(v)]);
    read_at_[Index(v)] += kReadsMove * (now - read_at_[Index(v)]);
  }
}

void PricedOrders::MakeOrder(bool may_drop, ComputeOrder* order) const {
  order->clear();
  for (int v = 0; v < graph_.size(); ++v) order->push_back({v, false});
  std::vector<bool> there(needed_.size());
  for (int v = 0; v < graph_.size(); ++v) there[Index(v)] = again_[Index(v)] != Again::kWhole;
  std::vector<int> open, dropped;
  int step = 0;
  const auto make = [&](int needed) {
    open.assign(1, needed);
    while (!open.empty()) {
      const int v = open.back();
      const size_t before = open.size();
      if (!there[Index(v)]) {
        for (const OpGraph::Input& input : graph_.inputs(v)) {
          if (!there[Index(input.vertex)]) open.push_back(input.vertex);
        }
        if (open.size() > before) continue;
        order->push_back({v, false});
        there[Index(v)] = true;
        const int later = first_need_[Index(v)];
        if (may_drop && later > step &&
            static_cast<double>(graph_.costs(v).output) *
                    (price_before_[Index(later)] - price_before_[Index(step) + 1]) >
                kDrop * static_cast<double>(graph_.costs(v).forward_time)) {
          dropped.push_back(v);
        }
      }
      open.pop_back();
    }
  };
  for (int v = graph_.size(); v-- > 0;) {
    step = StepOf(v);
    for (const OpGraph::Input& input : graph_.inputs(v)) {
      if (input.backward_needs) make(input.vertex);
    }
    if (again_[Index(v)] == Again::kForExtras) there[Index(v)] = false;
    if (graph_.costs(v).backward_needs_output || graph_.costs(v).extra > 0) make(v);
    order->push_back({v, true});
    for (const int u : dropped) there[Index(u)] = false;
    dropped.clear();
  }
}

// A part of Polyak's step towards the time that is known.
void PricedOrders::Reprice(int64_t target, int64_t known_time, const OrderCost& cost,
                           const ComputeOrder& order) {
  std::vector<int64_t> over(prices_.size(), -target);
  size_t step = 0;
  for (size_t i = 0; i < order.size() && step < over.size(); ++i) {
    over[step] = std::max(over[step], profile_.running[i] - target);
    if (order[i].backward) step = Index(StepOf(order[i].vertex)) + 1;
  }
  double paid = static_cast<double>(cost.forward_time), squares = 0.0;
  for (size_t s = 0; s < over.size(); ++s) {
    const auto bytes = static_cast<double>(over[s]);
    paid += prices_[s] * bytes;
    if (prices_[s] > 0.0 || bytes > 0.0) squares += bytes * bytes;
  }
  const auto known = static_cast<double>(known_time);
  if (paid > known + kNoGain * known) {
    for (double& price : prices_) price *= kFall;
  } else if (squares > 0.0) {
    const double rate = kStep * std::max(known - paid, kLeastGap * known) / squares;
    for (size_t s = 0; s < over.size(); ++s) {
      prices_[s] = std::max(0.0, prices_[s] + rate * static_cast<double>(over[s]));
    }
  }
}

absl::StatusOr<OrderCost> PricedOrders::Next(int64_t target, int64_t known_time,
                                             ComputeOrder* order) {
  absl::Status status = Choose();
  if (!status.ok()) return status;
  NoteReads();
  MakeOrder(std::exchange(drop_, !drop_), order);
  const OrderCost cost = evaluator_.EvaluateWithRunning(*order, target, &profile_);
  Reprice(target, known_time, cost, *order);
  status = poll_.Spend(static_cast<int64_t>(order->size()));
  if (!status.ok()) return status;
  return cost;
}

// To look at an arc takes a quarter of what it takes to replay a compute or an edge.
int64_t PricedOrders::work() const { return evaluator_.work() + cut_.looked_at() / 4; }

}  // namespace stowage
