// The memory that checkpoints save on the networks of Feng & Huang 2018, Table 2, measured.
//
// What is counted is what that paper counts: everything but what stays from step to step (weights, their
// gradients, buffers). "All training memory costs have excluded the stationary cost."
#ifndef STOWAGE_TESTS_BENCH_TORCH_MEMORY_ROW_H_
#define STOWAGE_TESTS_BENCH_TORCH_MEMORY_ROW_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "tests/bench/torch/turns.h"
#include "tests/solvers/paper_graphs.h"

namespace stowage {

// Training by one schedule.
struct MemoryCut {
  Bytes peak;           // measured, for the batch that ran
  double ratio = 0;     // to plain training's
  double accuracy = 0;  // to the evaluator's
  double overhead = 0;  // CPU time over a plain step's, less 1
};

struct MemoryRow {
  std::string network;
  int64_t batch = 0;   // the paper's
  int64_t shrink = 1;  // how many times smaller was what ran
  Bytes plain;
  double theoretical =
      0;  // objective of the division tree's checkpoints over all bytes of the paper's graph
  MemoryCut checkpoints;  // those of the paper's Algorithm 6
  MemoryCut same_memory;  // order_search within their peak
  MemoryCut least;        // order_search's least memory
};

struct MemoryOptions {
  int64_t shrink = 1;  // the batch is divided by it; 0: by UsualShrink
  int warmups = 0;
  int rounds = 1;
};

// The largest power of two that divides the batch and leaves plain training's memory, as the paper measured
// it, three times as large as the weights: what does not grow with the batch (gradients of single weights)
// is multiplied along, and would hide the rest. Errors: those of MakeNetwork.
absl::StatusOr<int64_t> UsualShrink(const PaperGraph& paper_graph);

// Of a graph that is op for op what LibTorch runs, with measured bytes and times. Errors: those of
// profiles, plans and steps; INVALID_ARGUMENT for a shrink that does not divide the batch.
absl::StatusOr<MemoryRow> MeasureMemory(const PaperGraph& paper_graph,
                                        const MemoryOptions& options);

// Bytes of a smaller batch are multiplied by how much smaller it is.
std::string MemoryHeader();
std::string MemoryMarkdown(const MemoryRow& row);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TORCH_MEMORY_ROW_H_
