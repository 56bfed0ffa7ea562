// The solvers of chains. Each lives as long as the process; see solvers/solver.h for the interface.
#ifndef STOWAGE_SOLVERS_CHAIN_SOLVERS_H_
#define STOWAGE_SOLVERS_CHAIN_SOLVERS_H_

#include "solvers/solver.h"

namespace stowage {

// Plain training: every forward keeps all. O(L).
const Solver& StoreAllSolver();

// Every solver's answer where nothing has to be recomputed: whether plain training fits the budget; if
// so, `plan` is FOUND with its schedule, which no other beats. O(instructions).
bool PlanStoreAll(const Instance& instance, Bytes budget, Plan* plan);

// Periodic checkpointing as torch.utils.checkpoint.checkpoint_sequential does it: the first k-1
// segments of floor(L/k) stages keep only their input, the rest is kept whole. The fastest k of all
// in 1..L that fits; O(L sqrt(L)). SequentialSchedule in solvers/chain/segments.h is the one of a
// given k.
const Solver& CheckpointSequentialSolver();

// Chen et al. 2016: store-all where it fits, else segments that keep only their input and are all
// recomputed, the last one too: sqrt(L) segments of equal length, O(L); or segments that end where
// what they would save exceeds a bound (their Algorithm 3), the best of 257 bounds, O(L) for each.
const Solver& ChenSqrtSolver();
const Solver& ChenGreedySolver();

// Revolve (Griewank & Walther 2000) for stages of any sizes and times: store-all where it fits, else
// the least time when only checkpoints are kept ahead: each stage saves right before its backward.
//   slots = 0: exact in bytes (proven_optimal) where step functions of at most 4,096 steps, fewer
//     on long chains, hold all; else the best of the steps kept.
//   slots > 0: step functions of that many steps.
// O(L^3 slots) time at worst; RESOURCE_EXHAUSTED where that is minutes. On equal stages it meets
// the closed form of Griewank & Walther 2000.
const Solver& RevolveSolver();

// Least time among memory-persistent schedules (Beaumont et al. 2019, Theorem 1): once a tensor is
// kept, it stays until its backward; and nothing is recomputed ahead of the backward that needs it.
// (Without that second rule there can be a faster one: solvers/chain/README.md.)
//   slots = 0: exact in bytes (proven_optimal) where that takes a fraction of a second; else the best
//     of what tables propose (algorithms.md, "Frontiers"). Whatever fits the exact minimum memory is
//     found, and more budget is never slower. Single budgets cost as much as a frontier of all.
//   slots > 0: a table of that many slots (up to twice as many, so that no memory is left out), every
//     size rounded up: NOT_FOUND when rounding alone stands in the way. Of a frontier: each octave's.
// Ties prefer keeping over recomputing; equal input gives equal plans. Refuses (RESOURCE_EXHAUSTED)
// chains of more than 4,096 stages, and those whose schedule of minimum memory has more than some 2
// million instructions: from 2,050 equal stages on. Infeasible is always proven in exact bytes.
// Frontiers have 600 points at most. Tables take O(S L^3) time and O(S L^2) memory.
const Solver& OptimalPersistentSolver();

// Beyond the theorem: a stage's saved tensors may be kept without its input, which is computed again
// for its backward; on chains of up to 15 stages checkpoints may also be dropped before their
// backward, or moved to a later stage. Never slower than OptimalPersistentSolver at the same
// options: the faster of both is returned. Optimal in its class (proven_optimal) where a table needs
// no rounding, a good schedule elsewhere; whatever fits the class's exact least memory is found.
//   slots as above.
// Ties prefer persistent schedules. Refuses (RESOURCE_EXHAUSTED) chains of more than some 600
// stages that do not repeat. O(S L^3) time, O(S L^2) memory; with moving checkpoints O(S L^4) and O(S L^3). The
// recurrence is described in algorithms.md.
const Solver& NonPersistentSolver();

// The recurrence of NonPersistentSolver() without moving checkpoints, over some of a chain's intervals (algorithms.md,
// "Some intervals"): what it leaves out are long parts that run again and end where a checkpoint is large. On chains
// of some 40 stages and more it is as good, and takes a fraction of the time; 1,000 stages take some tenths of a second. Not
// in the registry: the planner chooses it.
//   slots as above, sizes rounded to nearest: schedules are replayed.
// Whatever fits the least budget is found: that of the class on chains of up to 128 stages, of memory-persistent
// schedules on longer ones. More budget is never slower. Refuses (RESOURCE_EXHAUSTED) the chains that
// OptimalPersistentSolver() refuses. O(S L log L) time and memory, beside the O(L^3) time and O(L^2) memory that the least
// budget takes.
const Solver& SparseIntervalsSolver();

// The planner's own choice among the chain solvers: store-all whenever it fits; else non_persistent on chains of up to 40 stages,
// sparse_intervals on longer ones, checkpoint_sequential on those too long for it. Who asks for
// slots wants a table of all intervals: non_persistent on chains of up to 128 stages, else optimal_persistent, whose
// refusal is the answer. Plans name the solver
// that made them.
// Where only CheckpointSequentialSolver has plans that are short enough to be kept, Solve is NOT_FOUND below what these need, and a
// frontier says that nothing of that class needs less.
const Solver& ChosenChainSolver();

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_CHAIN_SOLVERS_H_
