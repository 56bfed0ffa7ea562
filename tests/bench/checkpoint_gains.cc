#include <sys/resource.h>
#include <chrono>
#include <cstdio>
#include "solvers/graph/checkpoint_solvers.h"
#include "tests/solvers/graph_file.h"
using namespace stowage;
int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    auto g = testing::ReadGraphFile(argv[i]);
    if (!g.ok()) {
      printf("%s\n", g.status().ToString().c_str());
      continue;
    }
    auto p = MakeCheckpointProblem(*g);
    printf("%s V %d E %zu total %ld\n", argv[i], p->graph.size(), p->graph.edge_count(),
           (long)p->graph.total().value());
    for (auto* s : {&SeveralEndsSolver()}) {
      auto t0 = clock();
      auto a = s->Solve(p->graph, {});
      double t = double(clock() - t0) / CLOCKS_PER_SEC;
      if (!a.ok()) {
        printf("  %s %s\n", s->info().name.c_str(), a.status().ToString().c_str());
        continue;
      }
      printf("  %-24s %14ld  R %4zu  lb %14ld  opt %d  %.4f of total, lb/obj %.3f  %.1f ms\n",
             s->info().name.c_str(), (long)a->set.objective().value(), a->set.checkpoints.size(),
             (long)a->lower_bound.value(), a->optimal,
             double(a->set.objective().value()) / p->graph.total().value(),
             double(a->lower_bound.value()) / a->set.objective().value(), t * 1e3);
    }
  }
}
