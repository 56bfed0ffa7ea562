#include "solvers/chain/persistent_table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// row[m] = min(row[m], constant + shifted[m] + fixed[m]) over [0, count). Rows never overlap, which
// lets it vectorise.
void MinPlus(int64_t* __restrict row, const int64_t* __restrict shifted,
             const int64_t* __restrict fixed, int64_t constant, int64_t count) {
  for (int64_t m = 0; m < count; ++m) {
    const int64_t candidate = constant + shifted[m] + fixed[m];
    row[m] = candidate < row[m] ? candidate : row[m];
  }
}

}  // namespace

PersistentTable::PersistentTable(const PersistentSpace& space, int64_t slots)
    : space_(space),
      slots_(slots),
      values_(new int64_t[static_cast<size_t>(SizeBytes(space.last(), slots) / 8)]) {}

const int64_t* PersistentTable::Row(int s, int t) const {
  const int64_t before =
      static_cast<int64_t>(s - 1) * space_.last() - static_cast<int64_t>(s - 1) * (s - 2) / 2;
  return values_.get() + (before + (t - s)) * (slots_ + 1);
}

int64_t* PersistentTable::Row(int s, int t) {
  return const_cast<int64_t*>(static_cast<const PersistentTable*>(this)->Row(s, t));
}

void PersistentTable::ComputeRow(int s, int t) {
  int64_t* row = Row(s, t);
  std::fill(row, row + slots_ + 1, kNever);
  const int64_t keep_from = std::max(space_.KeepAllNeed(s, t), space_.saved(s));
  if (s == t) {
    for (int64_t m = keep_from; m <= slots_; ++m) row[m] = 0;
    return;
  }
  const int64_t* inner = Row(s + 1, t);
  for (int64_t m = keep_from; m <= slots_; ++m) row[m] = inner[m - space_.saved(s)];

  int64_t run_need = space_.FirstRunNeed(s);
  for (int split = s + 1; split <= t && space_.Recomputable(s, split - 1); ++split) {
    if (split > s + 1) run_need = space_.ExtendRunNeed(run_need, split - 1);
    const int64_t kept = space_.activation(split - 1);
    const int64_t from = std::max(space_.gradient(t) + run_need, kept);
    if (from > slots_) break;  // the need grows with the split
    MinPlus(row + from, Row(split, t) + (from - kept), Row(s, split - 1) + from,
            space_.ForwardTime(s, split - 1), slots_ - from + 1);
  }
  for (int64_t m = 0; m <= slots_; ++m) row[m] = std::min(row[m], kNever);
}

absl::StatusOr<PersistentTable> PersistentTable::Compute(const PersistentSpace& space,
                                                         int64_t slots,
                                                         const SolveOptions& options) {
  const int last = space.last();
  const int64_t rows = static_cast<int64_t>(last) * (last + 1) / 2;
  if (rows > options.table_limit.value() / 8 / (slots + 1)) {
    return absl::ResourceExhaustedError(absl::StrCat("a table of ", slots, " slots for ", last,
                                                     " stages is over the limit of ",
                                                     options.table_limit.value(), " bytes"));
  }
  PersistentTable table(space, slots);
  StopPoll poll(options.stop);
  int64_t done = 0;
  for (int length = 0; length < last; ++length) {
    for (int s = 1; s + length <= last; ++s) {
      absl::Status status = poll.Spend((length + 1) * (slots + 1));
      if (!status.ok()) return status;
      table.ComputeRow(s, s + length);
    }
    done += last - length;
    if (options.progress) options.progress(static_cast<double>(done) / static_cast<double>(rows));
  }
  return table;
}

int64_t PersistentTable::Excess() const {
  const int64_t memory = slots_ - space_.activation(0);
  return memory < 0 ? kNever : Row(1, space_.last())[memory];
}

int PersistentTable::Choose(int s, int t, int64_t m) const {
  const int64_t value = Row(s, t)[m];
  if (m >= std::max(space_.KeepAllNeed(s, t), space_.saved(s)) &&
      Row(s + 1, t)[m - space_.saved(s)] == value) {
    return 0;
  }
  int64_t run_need = space_.FirstRunNeed(s);
  for (int split = s + 1; split <= t; ++split) {
    if (split > s + 1) run_need = space_.ExtendRunNeed(run_need, split - 1);
    const int64_t kept = space_.activation(split - 1);
    if (m < std::max(space_.gradient(t) + run_need, kept)) continue;
    if (space_.ForwardTime(s, split - 1) + Row(split, t)[m - kept] + Row(s, split - 1)[m] == value)
      return split;
  }
  return 0;
}

Schedule PersistentTable::Backtrack() const {
  return PersistentBacktrack::Run(space_, slots_ - space_.activation(0),
                                  [this](int s, int t, int64_t m) { return Choose(s, t, m); });
}

}  // namespace stowage
