// The ways to train a chain within a memory beside which a link to host memory is: recomputing,
// offloading by every strategy, and both.
#ifndef STOWAGE_TESTS_BENCH_TRANSFER_WAYS_H_
#define STOWAGE_TESTS_BENCH_TRANSFER_WAYS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"
#include "solvers/schedule/frontier.h"
#include "tests/bench/curve_set.h"

namespace stowage {

// The makespan, validated, of a schedule within the memory; nothing if the way finds none.
using Makespan = absl::StatusOr<std::optional<Nanos>>;

struct TransferWay {
  std::string name;
  std::function<Makespan(Bytes memory)> within;
};

inline constexpr char kChainWay[] = "recompute alone";
inline constexpr char kDynProgWay[] = "offload_dynprog";
inline constexpr char kJointWay[] = "joint";

// As many bytes per second each way, on one channel that both directions share, as Beaumont et al.
// 2020 have it; host memory for everything.
TransferModel HalfDuplexLink(int64_t bytes_per_second);

// "decoder_N" is a decoder of N layers (MakeDecoder), which has no image; all others are of
// AllNetworks(). INVALID_ARGUMENT if the network cannot be made so.
absl::StatusOr<Chain> ModelledChain(const Configuration& configuration);

// What the planner's choice for chains does without a link, at every budget.
absl::StatusOr<Frontier> RecomputeFrontier(const Chain& chain);

// `chain` and `recompute`, its frontier, must outlive the ways. The first is recomputing.
std::vector<TransferWay> AllTransferWays(const Chain& chain, const Frontier& recompute,
                                         const TransferModel& link);

// Those of them in `names`, in this order.
std::vector<TransferWay> Choose(std::vector<TransferWay> ways,
                                const std::vector<std::string>& names);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TRANSFER_WAYS_H_
