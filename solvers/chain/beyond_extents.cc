#include "solvers/chain/beyond_extents.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// Some five seconds of one core.
constexpr double kMaxAlternatives = 1.5e8;

BeyondExtents::Extent ExtentOf(const PersistentSpace& space, const BeyondExtents& known,
                               const Subchain& x) {
  BeyondExtents::Extent result;
  int32_t number = 0;
  ForEachAlternative(space, known.moving, x, [&](const Alternative& a) {
    int64_t least = a.need, all_kept = a.need;
    for (const auto& [part, held] : {std::pair(a.upper, a.held), std::pair(a.lower, int64_t{0})}) {
      if (part.empty()) continue;
      least = std::max(least, held + known[part].least);
      if (number == 0) all_kept = std::max(all_kept, held + known[part].all_kept);
    }
    if (number == 0) result.all_kept = all_kept;
    if (number == 0 || least < result.least) {
      result.least = least;
      result.choice = number;
    }
    ++number;
    return true;
  });
  return result;
}

}  // namespace

absl::StatusOr<BeyondExtents> ComputeExtents(const PersistentSpace& space, bool moving,
                                             const SolveOptions& options) {
  StopPoll poll(options.stop);
  absl::Status status = poll.Spend(0);
  if (!status.ok()) return status;
  // At the least there is an interval of every length.
  if (space.last() > kMaxIntervalStages + 1 ||
      2.0 * space.last() * space.last() > kMaxAlternatives) {
    return absl::ResourceExhaustedError(
        absl::StrCat(space.last(), " stages are too many for a recurrence of all their intervals"));
  }
  BeyondExtents result{moving, SubchainIndex(space, moving), {}};
  if (options.stop != nullptr) status = options.stop->Check();
  if (!status.ok()) return status;
  const SubchainIndex& index = result.index;
  const int64_t bytes = index.size() * static_cast<int64_t>(sizeof(BeyondExtents::Extent));
  if (index.alternatives() > kMaxAlternatives || bytes > options.table_limit.value() / 2) {
    return absl::ResourceExhaustedError(
        absl::StrCat(space.last(), " stages have ", index.alternatives(), " alternatives of ",
                     kMaxAlternatives, ", and their subchains take ", bytes, " bytes"));
  }
  result.extents.resize(static_cast<size_t>(index.size()));
  index.ForEach([&](const Subchain& x) {
    // An alternative takes as long as some tens of the poll's steps.
    status = poll.Spend(int64_t{64} * (x.last - x.first + 1));
    if (!status.ok()) return false;
    result.extents[static_cast<size_t>(result.index(x))] = ExtentOf(space, result, x);
    return true;
  });
  if (!status.ok()) return status;
  return result;
}

int64_t LeastBudgetOf(const PersistentSpace& space, const BeyondExtents& extents) {
  // Beside the recurrence: delta^0 alone is left at the end.
  return std::max(space.activation(0) + extents[{1, space.last()}].least, space.input_gradient());
}

Schedule LeastSchedule(const PersistentSpace& space, const BeyondExtents& extents) {
  return BuildSchedule(space.last(), extents[{1, space.last()}].least,
                       [&](const Subchain& x, int64_t) {
                         int32_t left = extents[x].choice;
                         Alternative chosen;
                         ForEachAlternative(space, extents.moving, x, [&](const Alternative& a) {
                           chosen = a;
                           return left-- > 0;
                         });
                         return chosen;
                       });
}

}  // namespace stowage
