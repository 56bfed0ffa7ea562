// The tables of Feng & Huang 2018 as ours, side by side with theirs; no column has both.
#ifndef STOWAGE_TESTS_BENCH_CHECKPOINT_REPORT_H_
#define STOWAGE_TESTS_BENCH_CHECKPOINT_REPORT_H_

#include <string>
#include <vector>

#include "tests/bench/checkpoint_rows.h"

namespace stowage {

// Three tables: memory ratios, CPU times, and what the papers measured in MB.
std::string CheckpointMarkdown(const std::vector<CheckpointRow>& rows);

// A line per network and solver, with the papers' figures of the network in columns of their own.
std::string CheckpointCsv(const std::vector<CheckpointRow>& rows);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_CHECKPOINT_REPORT_H_
