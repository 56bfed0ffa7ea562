// One network trained by plans on a device: memory against the prediction, time against plain training, gradients bit for bit.
#ifndef STOWAGE_TESTS_BENCH_GPU_TRAINING_ROWS_H_
#define STOWAGE_TESTS_BENCH_GPU_TRAINING_ROWS_H_

#include <chrono>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/torch/profile/transfer_meter.h"
#include "tests/bench/gpu/report_device.h"
#include "tests/bench/gpu/report_row.h"
#include "tests/bench/torch/trained_network.h"

namespace stowage {

struct ReportEffort {
  int warmups = 1;
  int rounds = 5;   // of plain steps and planned ones, in turn
  int repeats = 5;  // passes of the profile
  std::chrono::milliseconds patience = std::chrono::seconds(60);  // for a search
  TransferOptions transfers;
  std::optional<MeasuredTransfers> assumed_link;  // where none can be measured
  // Folder for what each instruction of a plan took against its prediction, a file a row; empty: none.
  std::string traces;
  bool trace_kernels = false;  // there, too, of two plain steps and two of each row
};

// Which a GPU has locked, for plans that copy.
inline constexpr Bytes kMostHostMemory(int64_t{24} << 30);

struct ReportedNetwork {
  std::string name;  // of its rows and steps
  NetworkChoice choice;
  Form form = Form::kChain;  // what is planned
  Bytes test_memory;         // what the test device has for the largest batch
  // On a GPU its steps are in bfloat16, by autocast that remembers no casts: one scope is around many steps.
  bool autocast = false;
};

// The link to host memory, and the row "link" that says what it moves.
absl::StatusOr<MeasuredTransfers> MeasureReportedLink(const ReportEffort& effort,
                                                      ReportDevice* device);
absl::Status AddLinkRow(const ReportEffort& effort, ReportDevice* device, ReportFile* file);

// Rows NAME/WAY/BUDGET: of plans that recompute and of such that copy, too, at 80%, 60% and 40% of plain training's memory and
// at their least; of checkpoint_sequential with the segments that are fastest by the prediction (chains), and of selective
// checkpointing. Where equal steps of plain training have unequal gradients, four of them say how far these are apart, and a
// planned step's gradients how far they are from the nearest. Rows that the file has are left out; what fails of one row stands in its place. Errors: those without
// which there are no rows, and those of the file.
absl::Status AddTrainingRows(const ReportedNetwork& network, const ReportEffort& effort,
                             ReportDevice* device, ReportFile* file);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_GPU_TRAINING_ROWS_H_
