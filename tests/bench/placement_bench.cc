// CPU time until the challenging instances of MiniMalloc fit in their capacity. Counters: `blocks`; `over`, what the extent is
// beyond the capacity: 0 where it fits.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "solvers/model/units.h"
#include "solvers/placement/placement.h"
#include "solvers/schedule/schedule_blocks.h"
#include "tests/solvers/placement/minimalloc_file.h"

namespace stowage {
namespace {

// The sizes are multiples of it.
constexpr Bytes kUnit(1024);

void BM_MiniMalloc(benchmark::State& state, char name) {
  std::vector<BlockLife> blocks;
  for (const UnitBlock& block :
       testing::MiniMallocBlocks(STOWAGE_SOURCE_DIR "/tests/data/minimalloc", name)) {
    blocks.push_back({Bytes(block.size), block.begin, block.end});
  }
  PlacementOptions options;
  options.alignment = kUnit;
  options.capacity = Bytes(testing::kMiniMallocCapacity);
  options.effort = 1000000000;
  int64_t extent = 0;
  for (auto _ : state) extent = PlaceBlocks(blocks, options)->extent.value();
  state.counters["blocks"] = static_cast<double>(blocks.size());
  state.counters["over"] =
      static_cast<double>(std::max<int64_t>(extent - testing::kMiniMallocCapacity, 0));
}

void Register() {
  for (char name = 'A'; name <= 'K'; ++name) {
    benchmark::RegisterBenchmark(("BM_MiniMalloc/" + std::string(1, name)).c_str(), BM_MiniMalloc,
                                 name)
        ->Unit(benchmark::kMillisecond);
  }
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  stowage::Register();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
