// Solvers of the checkpoint objective: CPU time of one solve. Counters: vertices `V`, edges `E`,
// checkpoints of the answer.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "solvers/graph/checkpoint_solver.h"
#include "solvers/graph/division_tree.h"
#include "solvers/zoo/roofline.h"
#include "tests/solvers/graph_file.h"
#include "tests/solvers/paper_graphs.h"
#include "tests/solvers/random_series_parallel.h"

namespace {

using stowage::Bytes;
using stowage::CheckpointGraph;
using stowage::CheckpointGraphSpec;
using stowage::CheckpointSolver;
using stowage::DivisionTree;
using stowage::StopPoll;
using stowage::testing::RandomSeriesParallel;
using stowage::testing::ReadGraphFile;

CheckpointGraph FileGraph(const std::string& name) {
  const auto graph = ReadGraphFile(STOWAGE_SOURCE_DIR "/tests/data/" + name + ".graph");
  return MakeCheckpointProblem(*graph)->graph;
}

CheckpointGraph Path(int vertices, bool equal) {
  CheckpointGraphSpec spec;
  uint64_t state = 1;
  for (int v = 0; v < vertices; ++v) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    spec.bytes.push_back(Bytes(equal ? 1000 : 1 + static_cast<int64_t>(state >> 44)));
    if (v > 0) spec.edges.push_back({v - 1, v});
  }
  return *CheckpointGraph::Create(std::move(spec));
}

void Solve(benchmark::State& state, const CheckpointSolver& solver, const CheckpointGraph& graph) {
  size_t checkpoints = 0;
  for (auto _ : state) checkpoints = solver.Solve(graph, {})->set.checkpoints.size();
  state.counters["V"] = graph.size();
  state.counters["E"] = static_cast<double>(graph.edge_count());
  state.counters["checkpoints"] = static_cast<double>(checkpoints);
}

void BM_Files(benchmark::State& state, const char* name) {
  Solve(state, stowage::DivisionTreeSolver(), FileGraph(name));
}
BENCHMARK_CAPTURE(BM_Files, alexnet, "alexnet")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Files, vgg19, "vgg19")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Files, resnet50, "resnet50")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Files, inception_v3, "inception_v3")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Files, densenet121, "densenet121")->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(BM_Files, nasnet_cifar, "nasnet_cifar")->Unit(benchmark::kMicrosecond);

void RegisterPapers() {
  for (const stowage::PaperGraph& paper : stowage::PaperGraphs()) {
    benchmark::RegisterBenchmark(("BM_Papers/" + paper.name).c_str(), [&paper](auto& state) {
      const auto graph = stowage::MakePaperGraph(paper, stowage::ModelledV100());
      Solve(state, stowage::DivisionTreeSolver(), MakeCheckpointProblem(*graph)->graph);
    })->Unit(benchmark::kMicrosecond);
  }
}

void BM_SeriesParallel(benchmark::State& state) {
  const int vertices = static_cast<int>(state.range(0));
  Solve(state, stowage::DivisionTreeSolver(), RandomSeriesParallel(vertices, 0.2, 1));
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_SeriesParallel)
    ->Arg(1000)
    ->Arg(2000)
    ->Arg(5000)
    ->Arg(10000)
    ->Arg(20000)
    ->Arg(50000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

void BM_DivisionTree(benchmark::State& state) {
  const CheckpointGraph graph = RandomSeriesParallel(static_cast<int>(state.range(0)), 0.2, 1);
  for (auto _ : state) {
    StopPoll poll(nullptr);
    benchmark::DoNotOptimize(DivisionTree::Build(graph, &poll)->size());
  }
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_DivisionTree)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->Arg(1000000)
    ->Unit(benchmark::kMillisecond)
    ->Complexity();

void BM_RandomPath(benchmark::State& state) {
  Solve(state, stowage::LinearCheckpointSolver(), Path(static_cast<int>(state.range(0)), false));
}
BENCHMARK(BM_RandomPath)
    ->Arg(1000)
    ->Arg(10000)
    ->Arg(100000)
    ->Arg(1000000)
    ->Unit(benchmark::kMillisecond);

void BM_EqualPath(benchmark::State& state) {
  Solve(state, stowage::LinearCheckpointSolver(), Path(static_cast<int>(state.range(0)), true));
}
BENCHMARK(BM_EqualPath)->Arg(1000)->Arg(100000)->Arg(1000000)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  RegisterPapers();
  benchmark::RunSpecifiedBenchmarks();
}
