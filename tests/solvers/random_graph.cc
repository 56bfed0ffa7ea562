#include "tests/solvers/random_graph.h"

#include <cstddef>
#include <cstdint>
#include <sstream>
#include <vector>

#include "solvers/schedule/evaluator.h"

namespace stowage::testing {
namespace {

int Draw(int low, int high, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int>(low, high)(*rng);
}

bool Chance(double probability, std::mt19937_64* rng) {
  return std::bernoulli_distribution(probability)(*rng);
}

// What a storage's readers so far forbid.
struct StorageUse {
  int64_t owner = 0;
  bool backward_needs = false;  // hence must not be written over
};

class GraphDraw {
 public:
  GraphDraw(const RandomGraphOptions& options, std::mt19937_64* rng)
      : o_(options), rng_(rng), use_(static_cast<size_t>(options.vertices)) {}

  Graph Run() {
    for (int p = 0; p < o_.vertices; ++p) {
      Vertex v = Costs(p);
      if (p > 0 && !Chance(o_.sources, rng_)) AddInputs(p, &v);
      if (o_.with_flags) AddFlags(&v);
      if (o_.collectives > 0.0) v.collective = v.collective || Chance(o_.collectives, rng_);
      if (o_.with_aliases && !v.inputs.empty()) MakeAlias(&v);
      if (o_.with_stops && v.alias == AliasKind::kNone) AddStop(&v);
      Record(p, v);
      spec_.vertices.push_back(v);
    }
    for (Vertex& v : spec_.vertices) {
      for (GraphInput& input : v.inputs) input.vertex += kFirstId;
    }
    return *Graph::Create(spec_);
  }

 private:
  static constexpr int64_t kFirstId = 10;

  Vertex Costs(int p) {
    Vertex v;
    v.id = kFirstId + p;
    v.program_order = p;
    v.output = Bytes(Draw(0, o_.max_size, rng_));
    v.output_gradient = Bytes(Draw(0, o_.max_size, rng_));
    if (o_.with_extras && Draw(0, 1, rng_) == 0) v.extra_saved = Bytes(Draw(1, o_.max_size, rng_));
    v.backward_needs_output = Draw(0, 2, rng_) == 0;
    v.forward_time = Nanos(Draw(0, o_.max_time, rng_));
    v.backward_time = Nanos(Draw(0, o_.max_time, rng_));
    if (o_.with_overheads) {
      v.forward_saving_overhead = Bytes(Draw(0, o_.max_size, rng_));
      v.forward_overhead = Bytes(Draw(0, o_.max_size, rng_));
      v.backward_overhead = Bytes(Draw(0, o_.max_size, rng_));
    }
    return v;
  }

  void AddStop(Vertex* v) {
    if (Draw(0, 2, rng_) == 0) return;
    v->recompute_saving_time = Nanos(Draw(0, static_cast<int>(v->forward_time.value()), rng_));
    if (Draw(0, 2, rng_) == 0) return;  // as much as a forward that goes on
    const Bytes most = v->output + v->forward_saving_overhead;
    v->recompute_saving_overhead = Bytes(Draw(0, static_cast<int>(most.value()), rng_));
  }

  void AddInputs(int p, Vertex* v) {
    const int near = Draw(p > o_.reach ? p - o_.reach : 0, p - 1, rng_);
    v->inputs.push_back({near, Draw(0, 1, rng_) == 0});
    for (int from = p > o_.reach ? p - o_.reach : 0; from < p; ++from) {
      if (from != near && Chance(o_.density, rng_)) {
        v->inputs.push_back({from, Draw(0, 1, rng_) == 0});
      }
    }
  }

  void AddFlags(Vertex* v) {
    v->random = Draw(0, 4, rng_) == 0;
    v->stateful = Draw(0, 7, rng_) == 0;
    v->collective = Draw(0, 7, rng_) == 0;
    v->must_keep = Draw(0, 7, rng_) == 0;
  }

  void MakeAlias(Vertex* v) {
    const int kind = Draw(0, 3, rng_);
    if (kind == 0) v->alias = AliasKind::kView;
    if (kind != 1) return;
    const int64_t owner = use_[static_cast<size_t>(v->inputs[0].vertex)].owner;
    if (use_[static_cast<size_t>(owner)].backward_needs) return;
    for (const GraphInput& input : v->inputs) {
      if (use_[static_cast<size_t>(input.vertex)].owner == owner && input.backward_needs) return;
    }
    v->alias = AliasKind::kInPlace;
  }

  void Record(int p, const Vertex& v) {
    StorageUse& own = use_[static_cast<size_t>(p)];
    own.owner =
        v.alias == AliasKind::kNone ? p : use_[static_cast<size_t>(v.inputs[0].vertex)].owner;
    for (const GraphInput& input : v.inputs) {
      const int64_t owner = use_[static_cast<size_t>(input.vertex)].owner;
      if (input.backward_needs) use_[static_cast<size_t>(owner)].backward_needs = true;
    }
    if (v.backward_needs_output) use_[static_cast<size_t>(own.owner)].backward_needs = true;
  }

  const RandomGraphOptions& o_;
  std::mt19937_64* rng_;
  std::vector<StorageUse> use_;  // by vertex; backward_needs by owner
  GraphSpec spec_;
};

// Changes a schedule here and there, and keeps what the evaluator accepts.
class ScheduleDraw {
 public:
  ScheduleDraw(const Graph& graph, std::mt19937_64* rng) : graph_(graph), rng_(rng) {
    for (int v = 1; v <= graph.size(); ++v) schedule_.push_back(ForwardSave(v));
    for (int v = graph.size(); v >= 1; --v) schedule_.push_back(Backward(v));
  }

  Schedule Run() {
    for (int step = 6 * graph_.size(); step > 0; --step) {
      Schedule changed = Change();
      if (Evaluator(graph_).Run(changed).ok()) schedule_ = std::move(changed);
    }
    return schedule_;
  }

 private:
  int Vertex() { return Draw(1, graph_.size(), rng_); }
  int Place() { return Draw(0, static_cast<int>(schedule_.size()), rng_); }
  Instruction Forward(int v) { return Draw(0, 1, rng_) == 0 ? ForwardSave(v) : ForwardNoSave(v); }

  Schedule Change() {
    Schedule changed = schedule_;
    const int kind = Draw(0, 5, rng_);
    const int at = Place();
    if (kind == 0) {
      Insert(at, Discard(TensorKind::kActivation, Vertex()), &changed);
    } else if (kind == 1) {
      Insert(at, Discard(TensorKind::kSaved, Vertex()), &changed);
    } else if (kind == 2) {
      Insert(at, ForwardSave(Vertex()), &changed);
    } else if (kind == 3) {
      DropAndMakeAgain(at, &changed);
    } else {
      const size_t i = static_cast<size_t>(Draw(1, static_cast<int>(changed.size()) - 1, rng_));
      if (kind == 4) {
        std::swap(changed[i - 1], changed[i]);
      } else if (IsForward(changed[i].op)) {
        changed[i].op = Forward(1).op;
      }
    }
    return changed;
  }

  // Drops a tensor, and later runs its op again and what wrote over it in place.
  void DropAndMakeAgain(int at, Schedule* schedule) {
    const int v = Vertex();
    int later = Draw(at, static_cast<int>(schedule->size()), rng_);
    Insert(at, Discard(TensorKind::kActivation, v), schedule);
    for (int p = v - 1; p < graph_.size(); ++p) {
      const bool again = p == v - 1 || graph_.vertex(p).alias == AliasKind::kInPlace;
      if (again && graph_.storage(p) == v - 1) Insert(++later, Forward(p + 1), schedule);
    }
  }

  static void Insert(int at, Instruction instruction, Schedule* schedule) {
    schedule->insert(schedule->begin() + at, instruction);
  }

  const Graph& graph_;
  std::mt19937_64* rng_;
  Schedule schedule_;
};

const char* Code(const Instruction& i) {
  switch (i.op) {
    case Op::kForwardSave:
      return "F+";
    case Op::kForwardNoSave:
      return "F";
    case Op::kBackward:
      return "B";
    case Op::kDiscard:
      return i.tensor == TensorKind::kSaved ? "-x" : "-a";
    default:
      return ToString(i.op);
  }
}

}  // namespace

Graph RandomGraph(const RandomGraphOptions& options, std::mt19937_64* rng) {
  return GraphDraw(options, rng).Run();
}

Schedule RandomSchedule(const Graph& graph, std::mt19937_64* rng) {
  return ScheduleDraw(graph, rng).Run();
}

std::string Describe(const Graph& graph) {
  std::ostringstream out;
  for (int p = 0; p < graph.size(); ++p) {
    const Vertex& v = graph.vertex(p);
    out << "\n  " << p + 1 << ":";
    for (const GraphInput& input : v.inputs) {
      out << " " << input.vertex + 1 << (input.backward_needs ? "!" : "");
    }
    if (v.alias == AliasKind::kView) out << " view";
    if (v.alias == AliasKind::kInPlace) out << " in place";
    out << " u_f=" << v.forward_time.value() << " u_b=" << v.backward_time.value()
        << " out=" << v.output.value() << (v.backward_needs_output ? "!" : "")
        << " grad=" << v.output_gradient.value() << " extra=" << v.extra_saved.value()
        << " o_f+=" << v.forward_saving_overhead.value() << " o_f0=" << v.forward_overhead.value()
        << " o_b=" << v.backward_overhead.value();
    if (v.stops()) {
      out << " stops=" << v.stopped_time().value() << "/" << v.stopped_overhead().value();
    }
    if (v.random) out << " random";
    if (v.stateful) out << " stateful";
    if (v.collective) out << " collective";
    if (v.must_keep) out << " keep";
  }
  return out.str();
}

std::string Describe(const Schedule& schedule) {
  std::ostringstream out;
  for (const Instruction& i : schedule) out << Code(i) << i.stage << " ";
  return out.str();
}

}  // namespace stowage::testing
