#include "solvers/schedule/internal/time_step_needs.h"

#include <algorithm>
#include <cstddef>

namespace stowage {
namespace {

void SortUnique(std::vector<int>* positions) {
  std::sort(positions->begin(), positions->end());
  positions->erase(std::unique(positions->begin(), positions->end()), positions->end());
}

int From(const GraphInput& input) { return static_cast<int>(input.vertex); }

// Calls `visit` with the vertices that make the versions which the backward needs.
template <class Visit>
void ForEachOutputNeeded(const Graph& graph, const GraphVersions& versions, int p,
                         const Visit& visit) {
  const Vertex& v = graph.vertex(p);
  for (size_t k = 0; k < v.inputs.size(); ++k) {
    if (v.inputs[k].backward_needs) visit(versions.read(p, k));
  }
  if (v.backward_needs_output) visit(versions.made(p));
}

// Grows with what comes before in the graph.
class LaterNeeds {
 public:
  LaterNeeds(const Graph& graph, const GraphVersions& versions)
      : graph_(graph),
        versions_(versions),
        below_(Index(graph.size()), false),
        outputs_(below_.size(), false) {}

  // Ancestors of p run backward after p.
  void AddAncestors(int p) {
    ForEachNewAncestor(graph_, p, &below_, [this](int from) {
      bytes_ += graph_.vertex(from).extra_saved.value();
      ForEachOutputNeeded(graph_, versions_, from, [this](int maker) {
        if (outputs_[Index(maker)]) return;
        outputs_[Index(maker)] = true;
        bytes_ += graph_.bytes(graph_.storage(maker)).value();
      });
    });
  }

  const std::vector<bool>& below() const { return below_; }
  const std::vector<bool>& outputs() const { return outputs_; }
  // Of outputs and extras. A storage counts for each of its versions, so that it may be any number.
  double bytes() const { return bytes_; }

 private:
  const Graph& graph_;
  const GraphVersions& versions_;
  std::vector<bool> below_, outputs_;
  double bytes_ = 0;
};

}  // namespace

std::vector<int> LongestPath(const Graph& graph) {
  std::vector<int> before, depth;
  int end = 0;
  for (int p = 0; p < graph.size(); ++p) {
    before.push_back(kNoIndex);
    depth.push_back(0);
    for (const GraphInput& input : graph.vertex(p).inputs) {
      const int from = From(input);
      if (depth[Index(from)] < depth[Index(p)]) continue;
      depth[Index(p)] = depth[Index(from)] + 1;
      before[Index(p)] = from;
    }
    if (depth[Index(p)] >= depth[Index(end)]) end = p;
  }
  std::vector<int> path;
  for (int p = end; p >= 0; p = before[Index(p)]) path.push_back(p);
  std::reverse(path.begin(), path.end());
  return path;
}

GraphMoments::GraphMoments(const Graph& graph) : graph_(graph), versions_(graph) {
  for (int p = 0; p < graph.size(); ++p) {
    work_ += 1 + static_cast<int64_t>(graph.vertex(p).inputs.size());
  }
}

std::vector<GraphMoment> GraphMoments::AlongLongestPath() const {
  if (!graph_.has_backwards()) return AlongLongestPathOfDag();
  std::vector<GraphMoment> moments;
  LaterNeeds later(graph_, versions_);
  for (const int p : LongestPath(graph_)) {
    later.AddAncestors(p);
    for (const bool backward : {false, true}) {
      GraphMoment moment = {p, backward, 0};
      const Own own = OwnAt(moment);
      double bytes = later.bytes() + static_cast<double>(own.bytes);
      for (const int maker : own.outputs) {
        if (later.outputs()[Index(maker)]) bytes -= static_cast<double>(StorageBytes(maker));
      }
      moment.bytes = static_cast<int64_t>(std::min(bytes, static_cast<double>(kMaxTotal)));
      moments.push_back(moment);
    }
  }
  return moments;
}

std::vector<GraphMoment> GraphMoments::AlongLongestPathOfDag() const {
  constexpr int64_t kMaxWork = 5000000;
  const std::vector<int> path = LongestPath(graph_);
  const size_t affordable = static_cast<size_t>(std::max<int64_t>(kMaxWork / work_, 1));
  std::vector<GraphMoment> moments;
  for (size_t i = 0; i < path.size(); i += 1 + path.size() / affordable) {
    GraphMoment moment = {path[i], false, 0};
    const double bytes = AtFirstForward(moment).all;
    moment.bytes = static_cast<int64_t>(std::min(bytes, static_cast<double>(kMaxTotal)));
    moments.push_back(moment);
  }
  return moments;
}

// What it reads has run before, what reads it runs later for the first time.
TimeStepNeeds GraphMoments::AtFirstForward(const GraphMoment& moment) const {
  const int p = moment.vertex;
  const std::vector<bool> below = Below(p), above = Above(p);
  const Own own = OwnAt(moment);
  TimeStepNeeds needs;
  needs.beside = own.bytes;
  needs.all = static_cast<double>(own.bytes);
  needs.output_needed.assign(below.size(), false);
  needs.extras_needed.assign(below.size(), false);
  needs.output_held.assign(below.size(), false);
  for (const int maker : own.outputs) needs.output_held[Index(maker)] = true;
  const auto need = [&](int maker) {
    if (!below[Index(maker)] || needs.output_needed[Index(maker)]) return;
    needs.output_needed[Index(maker)] = true;
    if (!needs.output_held[Index(maker)]) needs.all += static_cast<double>(StorageBytes(maker));
  };
  for (int q = 0; q < graph_.size(); ++q) {
    const Vertex& v = graph_.vertex(q);
    if (below[Index(q)]) needs.before += v.forward_time;
    if (below[Index(q)] && v.result) need(versions_.made(q));
    if (!above[Index(q)]) continue;
    needs.after += v.forward_time;
    for (size_t k = 0; q != p && k < v.inputs.size(); ++k) need(versions_.read(q, k));
  }
  return needs;
}

TimeStepNeeds GraphMoments::At(const GraphMoment& moment) const {
  if (!graph_.has_backwards()) return AtFirstForward(moment);
  const int p = moment.vertex;
  LaterNeeds later(graph_, versions_);
  later.AddAncestors(p);
  Own own = OwnAt(moment);
  std::vector<bool> above(Index(graph_.size()), false);
  above[Index(p)] = true;
  TimeStepNeeds needs;
  if (moment.backward) {
    above = Above(p);
    AddGradientsOfOthers(above, later.below(), &own);
    // All that reads it has run backward.
    needs.before = ForwardTimeUpTo(above);
  } else {
    needs.before = ForwardTimeUpTo(above) - graph_.vertex(p).forward_time;
  }
  for (int q = 0; q < graph_.size(); ++q) {
    const Nanos time = graph_.vertex(q).backward_time;
    if (later.below()[Index(q)] || q == p) {
      needs.after += time;
    } else if (above[Index(q)]) {
      needs.before += time;
    }
  }
  needs.beside = own.bytes;
  needs.all = later.bytes() + static_cast<double>(own.bytes);
  needs.output_needed = later.outputs();
  needs.extras_needed = later.below();
  needs.output_held.assign(Index(graph_.size()), false);
  for (const int maker : own.outputs) needs.output_held[Index(maker)] = true;
  for (int q = 0; q < graph_.size(); ++q) {
    if (graph_.vertex(q).extra_saved == Bytes(0)) needs.extras_needed[Index(q)] = false;
  }
  return needs;
}

GraphMoments::Own GraphMoments::OwnAt(const GraphMoment& moment) const {
  const int p = moment.vertex;
  const Vertex& v = graph_.vertex(p);
  Own own;
  std::vector<int> storages;
  const auto hold = [&](int maker) {
    own.outputs.push_back(maker);
    storages.push_back(graph_.storage(maker));
  };
  if (moment.backward) {
    ForEachOutputNeeded(graph_, versions_, p, hold);
    own.gradients.push_back(graph_.storage(p));
    for (const GraphInput& input : v.inputs) own.gradients.push_back(graph_.storage(From(input)));
    own.bytes = (v.extra_saved + v.backward_overhead).value();
  } else {
    for (size_t k = 0; k < v.inputs.size(); ++k) hold(versions_.read(p, k));
    own.bytes = ForwardBytes(p);
  }
  SortUnique(&storages);
  SortUnique(&own.gradients);
  for (const int storage : storages) own.bytes += graph_.bytes(storage).value();
  for (const int storage : own.gradients) {
    own.bytes += graph_.vertex(storage).output_gradient.value();
  }
  return own;
}

// Its output counts where it is its own.
int64_t GraphMoments::ForwardBytes(int p) const {
  const Vertex& v = graph_.vertex(p);
  if (!graph_.has_backwards()) return (graph_.bytes(p) + v.forward_overhead).value();
  const Bytes saving = v.extra_saved + v.forward_saving_overhead;
  Bytes need = v.extra_saved > Bytes(0) ? saving : std::min(saving, v.forward_overhead);
  need += graph_.bytes(p);
  // The last one may be a recompute that stops before the output.
  if (v.stops() && Recomputable(v)) need = std::min(need, v.extra_saved + v.stopped_overhead());
  return need.value();
}

std::vector<bool> GraphMoments::Above(int p) const {
  std::vector<bool> above(Index(graph_.size()), false);
  above[Index(p)] = true;
  for (int q = p; q < graph_.size(); ++q) {
    for (const GraphInput& input : graph_.vertex(q).inputs) {
      if (above[Index(From(input))]) above[Index(q)] = true;
    }
  }
  return above;
}

std::vector<bool> GraphMoments::Below(int p) const {
  std::vector<bool> below(Index(graph_.size()), false);
  below[Index(p)] = true;
  AddWhatTheyRead(&below);
  below[Index(p)] = false;
  return below;
}

void GraphMoments::AddWhatTheyRead(std::vector<bool>* marked) const {
  for (int q = graph_.size() - 1; q >= 0; --q) {
    if (!(*marked)[Index(q)]) continue;
    for (size_t k = 0; k < graph_.vertex(q).inputs.size(); ++k) {
      (*marked)[Index(From(graph_.vertex(q).inputs[k]))] = true;
      (*marked)[Index(versions_.read(q, k))] = true;
    }
  }
}

void GraphMoments::AddGradientsOfOthers(const std::vector<bool>& above,
                                        const std::vector<bool>& below, Own* own) const {
  std::vector<int> storages;
  for (int q = 0; q < graph_.size(); ++q) {
    if (!above[Index(q)]) continue;
    for (const GraphInput& input : graph_.vertex(q).inputs) {
      const int storage = graph_.storage(From(input));
      if (below[Index(storage)]) storages.push_back(storage);
    }
  }
  SortUnique(&storages);
  for (const int storage : storages) {
    if (std::binary_search(own->gradients.begin(), own->gradients.end(), storage)) continue;
    own->bytes += graph_.vertex(storage).output_gradient.value();
  }
}

Nanos GraphMoments::ForwardTimeUpTo(std::vector<bool> last) const {
  AddWhatTheyRead(&last);
  Nanos time;
  for (int q = 0; q < graph_.size(); ++q) {
    if (last[Index(q)]) time += graph_.vertex(q).forward_time;
  }
  return time;
}

}  // namespace stowage
