// Recomputing, offloading and both on one axis: how much memory each saves for a bounded loss of
// time on links of several speeds, and what half of the memory costs against the balance of a
// machine's arithmetic and its link.
#ifndef STOWAGE_TESTS_BENCH_TRANSFER_SAVINGS_H_
#define STOWAGE_TESTS_BENCH_TRANSFER_SAVINGS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/units.h"
#include "tests/bench/curve_set.h"

namespace stowage {

// The overhead that is allowed: a makespan of at most this times the ideal.
inline constexpr double kSavingsLimit = 1.2;

struct SavingsRow {
  Configuration configuration;
  Bytes store_all_peak;
  std::vector<std::string> ways;
  // By link and way: the least memory found, up to 1%, in which the makespan is within the limit.
  std::vector<std::vector<std::optional<Bytes>>> least;
};

absl::StatusOr<SavingsRow> ComputeSavings(const Configuration& configuration);

// Store-all's peak over the least memory, as Markdown and CSV.
std::string SavingsMarkdown(const std::vector<SavingsRow>& rows);
std::string SavingsCsv(const std::vector<SavingsRow>& rows);

struct BalanceRow {
  Configuration configuration;
  std::vector<std::string> ways;
  // By balance (FLOP of the device in the time in which its link moves a byte) and way: makespan
  // over the ideal, at half of store-all's peak.
  std::vector<std::vector<std::optional<double>>> slowdowns;
};

absl::StatusOr<BalanceRow> ComputeBalance(const Configuration& configuration);

std::string BalanceMarkdown(const std::vector<BalanceRow>& rows);
std::string BalanceCsv(const std::vector<BalanceRow>& rows);
// A panel per network.
std::string BalanceSvg(const std::vector<BalanceRow>& rows);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TRANSFER_SAVINGS_H_
