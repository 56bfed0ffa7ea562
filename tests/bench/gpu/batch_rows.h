// The largest batch that a network trains within a device's memory, plain and by plans.
#ifndef STOWAGE_TESTS_BENCH_GPU_BATCH_ROWS_H_
#define STOWAGE_TESTS_BENCH_GPU_BATCH_ROWS_H_

#include "absl/status/status.h"
#include "tests/bench/gpu/training_rows.h"

namespace stowage {

// Rows NAME/batch/plain, .../recompute and .../joint: the batch, to an eighth of it, and samples per second at it. Batches grow
// from the network's own, twofold. What is left out and errors: as of AddTrainingRows.
absl::Status AddBatchRows(const ReportedNetwork& network, const ReportEffort& effort,
                          ReportDevice* device, ReportFile* file);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_GPU_BATCH_ROWS_H_
