#include "solvers/graph/fold.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

#include "solvers/model/index.h"

namespace stowage {
namespace {

constexpr size_t kMaxOpKind = 256;

// Which folded vertex each op goes to. A group is a run of the members of one storage.
struct Groups {
  std::vector<int> group_of;              // by position
  std::vector<std::vector<int>> members;  // rising
  std::vector<int> first_version;         // of a later version: the group that owns the bytes
  std::vector<int> versions;              // of a group that owns bytes: how many share them
  std::vector<bool> pinned;               // cannot come back once it is gone
};

// The members of every storage in program order, and the outside readers among them.
struct StorageUses {
  std::vector<std::vector<int>> members;
  std::vector<std::vector<int>> readers;  // of any version, not members; rising
};

StorageUses FindUses(const Graph& graph) {
  StorageUses uses;
  uses.members.resize(Index(graph.size()));
  uses.readers.resize(Index(graph.size()));
  for (int p = 0; p < graph.size(); ++p) {
    const int own = graph.storage(p);
    uses.members[Index(own)].push_back(p);
    for (const GraphInput& input : graph.vertex(p).inputs) {
      const int root = graph.storage(static_cast<int>(input.vertex));
      std::vector<int>& readers = uses.readers[Index(root)];
      if (root != own && (readers.empty() || readers.back() != p)) readers.push_back(p);
    }
  }
  return uses;
}

// Whether the op cannot run before what else it reads has: a write, or a view that reads more than
// what it shows.
bool WaitsForOthers(const Vertex& v) { return v.alias != AliasKind::kView || v.inputs.size() > 1; }

// Where a storage's members fall apart: a group ends before a write that follows an outside reader.
void AddGroups(const Graph& graph, int root, const StorageUses& uses, Groups* groups,
               std::vector<int>* pinned_readers) {
  const std::vector<int>& readers = uses.readers[Index(root)];
  size_t seen = 0;  // readers that the groups before this one have
  const int first = static_cast<int>(groups->members.size());
  const auto open = [&] {
    const bool later = static_cast<int>(groups->members.size()) > first;
    groups->members.emplace_back();
    groups->first_version.push_back(later ? first : kNoIndex);
    groups->versions.push_back(0);
    groups->pinned.push_back(later);
    ++groups->versions[Index(first)];
  };
  open();
  for (const int p : uses.members[Index(root)]) {
    size_t before = seen;
    while (before < readers.size() && readers[before] < p) ++before;
    if (WaitsForOthers(graph.vertex(p)) && before > seen) {
      for (; seen < before; ++seen) pinned_readers->push_back(readers[seen]);
      groups->pinned[Index(first)] = true;
      open();
    }
    groups->group_of[Index(p)] = static_cast<int>(groups->members.size()) - 1;
    groups->members.back().push_back(p);
  }
}

Groups MakeGroups(const Graph& graph) {
  const StorageUses uses = FindUses(graph);
  Groups groups;
  groups.group_of.assign(Index(graph.size()), kNoIndex);
  std::vector<int> pinned_readers;
  for (int p = 0; p < graph.size(); ++p) {
    if (graph.storage(p) == p) AddGroups(graph, p, uses, &groups, &pinned_readers);
  }
  for (const int p : pinned_readers) groups.pinned[Index(groups.group_of[Index(p)])] = true;
  return groups;
}

// Where a group stands in the program: at its last write, after all that its members read; views
// come along.
int Anchor(const Graph& graph, const std::vector<int>& members) {
  int anchor = members.front();
  for (const int p : members) {
    if (WaitsForOthers(graph.vertex(p))) anchor = p;
  }
  return anchor;
}

// What one group reads of the others: each group once, flags joined.
std::vector<GraphInput> Merged(std::vector<GraphInput> inputs) {
  std::sort(inputs.begin(), inputs.end(), [](const GraphInput& a, const GraphInput& b) {
    return std::make_pair(a.vertex, !a.backward_needs) <
           std::make_pair(b.vertex, !b.backward_needs);
  });
  const auto same = [](const GraphInput& a, const GraphInput& b) { return a.vertex == b.vertex; };
  inputs.erase(std::unique(inputs.begin(), inputs.end(), same), inputs.end());
  return inputs;
}

// The version of the input's storage that a reader at `position` sees: the last group of the
// storage that starts before it.
int VersionAt(const Graph& graph, const Groups& groups, int input, int position) {
  const int first = groups.group_of[Index(graph.storage(input))];
  const auto begin = groups.members.begin() + first;
  const auto after = std::partition_point(
      begin, begin + groups.versions[Index(first)],
      [position](const std::vector<int>& members) { return members.front() < position; });
  return static_cast<int>(after - groups.members.begin()) - 1;
}

class GroupVertex {
 public:
  GroupVertex(const Graph& graph, const Groups& groups, int group)
      : graph_(graph), groups_(groups), group_(group) {}

  Vertex Make() {
    const std::vector<int>& members = groups_.members[Index(group_)];
    const Vertex& first = graph_.vertex(members.front());
    const bool owns = groups_.first_version[Index(group_)] == kNoIndex;
    made_.name = first.name;
    made_.output = owns ? first.output : Bytes(0);
    made_.output_gradient = owns ? first.output_gradient : Bytes(0);
    made_.must_keep = groups_.pinned[Index(group_)];
    made_.stateful = groups_.pinned[Index(group_)];
    made_.linear_multi_input = graph_.has_backwards();
    if (!owns) inputs_.push_back({groups_.first_version[Index(group_)], false});
    Bytes forward_saving;
    for (const int p : members) {
      AddMember(graph_.vertex(p), p);
      forward_saving =
          std::max(forward_saving, made_.extra_saved + graph_.vertex(p).forward_saving_overhead);
    }
    made_.forward_saving_overhead = forward_saving - made_.extra_saved;
    // With others in its group, theirs come between its recompute and its backward.
    if (members.size() == 1) {
      made_.recompute_saving_time = first.recompute_saving_time;
      made_.recompute_saving_overhead = first.recompute_saving_overhead;
    }
    made_.inputs = Merged(std::move(inputs_));
    made_.linear_multi_input &= made_.inputs.size() > 1;
    return std::move(made_);
  }

 private:
  void AddMember(const Vertex& v, int position) {
    if (made_.op_kind.size() + v.op_kind.size() < kMaxOpKind) {
      absl::StrAppend(&made_.op_kind, made_.op_kind.empty() ? "" : "+", v.op_kind);
    }
    for (const GraphInput& input : v.inputs) {
      AddInput(static_cast<int>(input.vertex), input.backward_needs, position);
    }
    made_.extra_saved += v.extra_saved;
    made_.backward_needs_output |= v.backward_needs_output;
    made_.forward_time += v.forward_time;
    made_.backward_time += v.backward_time;
    made_.forward_overhead = std::max(made_.forward_overhead, v.forward_overhead);
    made_.backward_overhead = std::max(made_.backward_overhead, v.backward_overhead);
    made_.transient_parameters = std::max(made_.transient_parameters, v.transient_parameters);
    made_.linear_multi_input &= v.linear_multi_input || v.inputs.size() < 2;
    made_.random |= v.random;
    made_.stateful |= v.stateful;
    made_.collective |= v.collective;
    made_.must_keep |= v.must_keep;
    made_.result |= v.result;
  }

  void AddInput(int input, bool needs, int position) {
    const int version = VersionAt(graph_, groups_, input, position);
    if (version == group_) {
      made_.backward_needs_output |= needs;
      return;
    }
    inputs_.push_back({version, needs});
    const int first = groups_.first_version[Index(version)];
    if (first != kNoIndex && first != group_) inputs_.push_back({first, needs});
  }

  const Graph& graph_;
  const Groups& groups_;
  const int group_;
  std::vector<GraphInput> inputs_;
  Vertex made_;
};

// Whether the group has the bytes of a later version that is a result.
bool OwnsResult(const Graph& graph, const Groups& groups, int group) {
  for (int later = group + 1; later < group + groups.versions[Index(group)]; ++later) {
    for (const int p : groups.members[Index(later)]) {
      if (graph.vertex(p).result) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<FoldedGraph> FoldAliases(const Graph& graph) {
  const Groups groups = MakeGroups(graph);
  std::vector<std::pair<int, int>> order;  // anchor, group
  for (size_t g = 0; g < groups.members.size(); ++g) {
    order.push_back({Anchor(graph, groups.members[g]), static_cast<int>(g)});
  }
  std::sort(order.begin(), order.end());
  GraphSpec spec;
  spec.name = graph.name();
  spec.has_backwards = graph.has_backwards();
  std::vector<std::vector<int>> members;
  for (const auto& [anchor, group] : order) {
    Vertex v = GroupVertex(graph, groups, group).Make();
    v.result |= OwnsResult(graph, groups, group);
    v.id = group;
    v.program_order = anchor;
    spec.vertices.push_back(std::move(v));
    members.push_back(groups.members[Index(group)]);
  }
  absl::StatusOr<Graph> folded = Graph::Create(std::move(spec));
  if (!folded.ok()) return folded.status();
  return FoldedGraph{*std::move(folded), std::move(members)};
}

Schedule UnfoldCompute(const FoldedGraph& folded, const Schedule& schedule) {
  Schedule unfolded;
  std::vector<bool> has_run(folded.members.size(), false);
  size_t first_runs = 0;  // where the first runs at the end of `unfolded` begin
  const auto by_position = [](const Instruction& a, const Instruction& b) {
    return a.stage < b.stage;
  };
  const auto end_first_runs = [&] {
    std::sort(unfolded.begin() + static_cast<std::ptrdiff_t>(first_runs), unfolded.end(),
              by_position);
  };
  for (const Instruction& i : schedule) {
    if (i.op == Op::kDiscard) continue;
    const bool first_run = IsForward(i.op) && !has_run[Index(i.stage - 1)];
    if (!first_run) end_first_runs();
    const std::vector<int>& members = folded.members[Index(i.stage - 1)];
    const auto add = [&](int position) {
      Instruction run = i;
      run.stage = position + 1;
      run.stream = Stream::kCompute;
      unfolded.push_back(run);
    };
    if (i.op == Op::kBackward) {
      std::for_each(members.rbegin(), members.rend(), add);
    } else {
      std::for_each(members.begin(), members.end(), add);
    }
    has_run[Index(i.stage - 1)] = true;
    if (!first_run) first_runs = unfolded.size();
  }
  end_first_runs();
  return unfolded;
}

}  // namespace stowage
