// What is decided at the top of a schedule with recomputation and transfers: its stages, in order,
// in parts. Internal to solvers/transfer.
#ifndef STOWAGE_SOLVERS_TRANSFER_OUTLINE_H_
#define STOWAGE_SOLVERS_TRANSFER_OUTLINE_H_

#include <optional>
#include <vector>

#include "solvers/model/units.h"
#include "solvers/schedule/schedule.h"
#include "solvers/transfer/segment_costs.h"

namespace stowage {

// Stages that run, save nothing and run again before their backwards: only the input of the first
// is kept. The last one may be saved instead; if it is the only one, that is all.
struct OutlinePart {
  int first = 0;
  int last = 0;
  bool saved = false;  // the last stage is
  // For the second run of the others and their backwards (SegmentCosts).
  Bytes room;
  // The part's input, what the part before it saved or else a^{first-1}, goes to the host.
  bool input_away = false;

  friend bool operator==(const OutlinePart& a, const OutlinePart& b) {
    return a.first == b.first && a.last == b.last && a.saved == b.saved && a.room == b.room &&
           a.input_away == b.input_away;
  }
};

// The parts' stages follow one another, 1..L+1. The last part is the loss, saved.
using Outline = std::vector<OutlinePart>;

// From an outline to the schedule without transfers that it stands for, and back. Internal to
// solvers/transfer.

// Segments run in their rooms, which are at least their least ones. O(L^2).
Schedule ComputeScheduleOf(const Outline& outline, const SegmentCosts& costs);

// What the schedule recomputes, ns. O(parts), of a few steps each.
double RecomputeTimeOf(const Outline& outline, const SegmentCosts& costs);

// An outline that begins as the schedule does up to its first backward, each part with all the room
// that is of use to it; nothing if there is none. O(L).
std::optional<Outline> OutlineOf(const Schedule& schedule, const SegmentCosts& costs);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_OUTLINE_H_
