#include "tests/bench/checkpoint_growth.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "solvers/graph/checkpoint_solver.h"
#include "tests/bench/svg_plot.h"
#include "tests/bench/thread_cpu.h"
#include "tests/solvers/random_series_parallel.h"

namespace stowage {
namespace {

constexpr uint64_t kSeeds = 5;
constexpr int kRepeats = 5;
constexpr double kRigid = 0.2;

absl::StatusOr<Nanos> QuickestSolve(const CheckpointGraph& graph) {
  Nanos quickest(INT64_MAX);
  for (int i = 0; i < kRepeats; ++i) {
    const Nanos start = ThreadCpu();
    const absl::StatusOr<CheckpointAnswer> answer = DivisionTreeSolver().Solve(graph, {});
    quickest = std::min(quickest, ThreadCpu() - start);
    if (!answer.ok()) return answer.status();
  }
  return quickest;
}

}  // namespace

const std::vector<int>& GrowthSizes() {
  static const auto* const kSizes =
      new std::vector<int>{1000, 2000, 5000, 10000, 15000, 20000, 30000, 40000, 50000};
  return *kSizes;
}

absl::StatusOr<std::vector<GrowthPoint>> MeasureGrowth(const std::vector<int>& sizes) {
  std::vector<GrowthPoint> points;
  for (const int size : sizes) {
    GrowthPoint point{0, 0, Nanos(0)};
    std::vector<Nanos> times;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      const CheckpointGraph graph = testing::RandomSeriesParallel(size, kRigid, seed);
      point.vertices = graph.size();
      point.edges = graph.edge_count();
      const absl::StatusOr<Nanos> time = QuickestSolve(graph);
      if (!time.ok()) return time.status();
      times.push_back(*time);
    }
    std::sort(times.begin(), times.end());
    point.cpu = times[times.size() / 2];
    points.push_back(point);
  }
  return points;
}

std::string GrowthCsv(const std::vector<GrowthPoint>& points) {
  std::string csv = "vertices,edges,cpu_ns\n";
  for (const GrowthPoint& point : points) {
    absl::StrAppendFormat(&csv, "%d,%d,%d\n", point.vertices, point.edges, point.cpu.value());
  }
  return csv;
}

std::string GrowthSvg(const std::vector<GrowthPoint>& points) {
  const std::string thousands = "vertices [1,000]";
  Series whole{"division_tree"}, each{"division_tree"};
  for (const GrowthPoint& point : points) {
    const double vertices = point.vertices, cpu = static_cast<double>(point.cpu.value());
    whole.crosses.push_back({vertices / 1e3, cpu / 1e6});
    each.crosses.push_back({vertices / 1e3, cpu / 1e3 / vertices});
  }
  return RenderSvg("Random series-parallel graphs, a fifth of their parts rigid",
                   {{"One solve", thousands, "CPU time [ms]", {whole}},
                    {"Per vertex", thousands, "CPU time [us]", {each}}});
}

}  // namespace stowage
