#include "tests/solvers/random_compute_dag.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace stowage::testing {
namespace {

constexpr int64_t kFirstId = 10;

int64_t DrawNumber(int64_t low, int64_t high, std::mt19937_64* rng) {
  return std::uniform_int_distribution<int64_t>(low, high)(*rng);
}

bool Happens(double probability, std::mt19937_64* rng) {
  return std::bernoulli_distribution(probability)(*rng);
}

void SetFlags(std::mt19937_64* rng, Vertex* v) {
  v->random = DrawNumber(0, 5, rng) == 0;
  v->stateful = DrawNumber(0, 8, rng) == 0;
  v->collective = DrawNumber(0, 8, rng) == 0;
  v->must_keep = DrawNumber(0, 8, rng) == 0;
}

}  // namespace

Graph RandomComputeDag(const RandomComputeDagOptions& options, std::mt19937_64* rng) {
  GraphSpec spec;
  spec.has_backwards = false;
  // Whether something else than the node itself may still want the value; a write would take it away.
  std::vector<bool> shared(static_cast<size_t>(options.nodes), false);
  for (int p = 0; p < options.nodes; ++p) {
    Vertex v;
    v.id = kFirstId + p;
    v.program_order = p;
    v.output = Bytes(DrawNumber(0, options.max_size, rng));
    v.forward_time = Nanos(DrawNumber(0, options.max_time, rng));
    v.forward_overhead = Bytes(DrawNumber(0, options.max_size, rng));
    v.result = p + 1 == options.nodes || Happens(options.results, rng);
    if (p > 0 && !Happens(0.1, rng)) {
      const int64_t first = DrawNumber(p > 4 ? p - 4 : 0, p - 1, rng);
      v.inputs.push_back({kFirstId + first, false});
      for (int64_t u = 0; u < p; ++u) {
        if (u != first && Happens(options.density, rng)) v.inputs.push_back({kFirstId + u, false});
      }
      const auto of = static_cast<size_t>(first);
      if (options.with_views && Happens(0.2, rng)) {
        v.alias = AliasKind::kView;
        shared[of] = shared[static_cast<size_t>(p)] = true;
      } else if (options.with_writes && !shared[of] && !spec.vertices[of].result &&
                 spec.vertices[of].alias == AliasKind::kNone && Happens(0.2, rng)) {
        v.alias = AliasKind::kInPlace;
        shared[static_cast<size_t>(p)] = true;
      }
      for (const GraphInput& input : v.inputs) {
        shared[static_cast<size_t>(input.vertex - kFirstId)] = true;
      }
    }
    if (options.with_flags) SetFlags(rng, &v);
    spec.vertices.push_back(v);
  }
  return *Graph::Create(spec);
}

}  // namespace stowage::testing
