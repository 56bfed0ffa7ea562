// How the CPU time of the division tree's solver grows with the graph: random series-parallel graphs,
// a fifth of their parts rigid.
#ifndef STOWAGE_TESTS_BENCH_CHECKPOINT_GROWTH_H_
#define STOWAGE_TESTS_BENCH_CHECKPOINT_GROWTH_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"

namespace stowage {

struct GrowthPoint {
  int vertices;
  size_t edges;
  Nanos cpu;  // of one solve: the median over the seeds, of each the quickest of five
};

// 1,000 to 50,000 vertices.
const std::vector<int>& GrowthSizes();

// One point per size.
absl::StatusOr<std::vector<GrowthPoint>> MeasureGrowth(const std::vector<int>& sizes);

std::string GrowthCsv(const std::vector<GrowthPoint>& points);
// Milliseconds, and microseconds per vertex, against thousands of vertices.
std::string GrowthSvg(const std::vector<GrowthPoint>& points);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_CHECKPOINT_GROWTH_H_
