// A schedule with some instructions elsewhere. Internal to moved_copies.cc.
#ifndef STOWAGE_SOLVERS_TRANSFER_INTERNAL_MOVED_COPIES_H_
#define STOWAGE_SOLVERS_TRANSFER_INTERNAL_MOVED_COPIES_H_

#include <cstddef>
#include <vector>

#include "solvers/schedule/schedule.h"
#include "solvers/schedule/simulation.h"

namespace stowage {

// `before`: by instruction, the one before which it is to come; itself where it stays. Those that go to
// one place keep their order. O(n log n).
Schedule WithMoved(const Schedule& schedule, const std::vector<size_t>& before);

// Waits for offloads as early as that makes a schedule no slower.
//
// Where the link is what takes the time, compute runs ahead of it until memory is full, and then waits for
// each copy. Here it waits before: for the next copy where there is nothing to be had from being ahead. Memory is
// then less full while tensors leave, as it is with WithLatePrefetches while they come back.

// `schedule`, of a chain or a graph, with the same instructions, waits for offloads earlier.
// `timeline` is the evaluator's; `earliest` says for each instruction that is such a wait before which the
// wait may come: after the last that reads its tensor before it has left. Compute keeps of the time to
// spare `margin` times what a copy takes, for links that are slower than they were said to be. Memory is at no
// time more than before; the evaluator says whether the makespan is. O(instructions log instructions).
Schedule WithEarlyWaits(const Schedule& schedule, const std::vector<TimelinePoint>& timeline,
                        const std::vector<size_t>& earliest, double margin);

// Starts copies from the host as late as they may without making a schedule slower.
//
// The replays that choose times start each copy as early as there is memory for it. Where the link has time
// to spare, memory is then full of tensors that have come back long before they are read, and blocks that
// come and go find no places in one region of memory (solvers/placement) but with much of it lost to fragmentation.

// `schedule`, of a chain or a graph, with the same instructions, those that start prefetches later.
// `timeline` is the evaluator's; `full_duplex` says whether prefetches have a channel to themselves. Each
// prefetch keeps of the time to spare `margin` times what it takes, for links that are slower than they
// were said to be. Memory is at no time more than before, and the makespan is the same but where copies
// on one channel meet: the evaluator says. O(instructions log instructions).
Schedule WithLatePrefetches(const Schedule& schedule, const std::vector<TimelinePoint>& timeline,
                            bool full_duplex, double margin);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_TRANSFER_INTERNAL_MOVED_COPIES_H_
