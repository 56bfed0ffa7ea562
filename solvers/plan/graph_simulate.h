// The referee for graphs: replays a schedule over the vertices of a graph and says whether it is
// valid, how long it takes and how much memory it needs. Independent of all solvers.
//
// Instruction.stage is the vertex's position in program order plus 1. Held is what is stored:
// tensors (one per storage, of the size of its owner's output), extras (what a vertex saves beyond
// inputs and output), and gradients (one per storage); nothing at the start.
//
//   op                    needs                       while it runs              afterwards
//   forward-keep-all v    inputs; v's extras are not  held + output + extras     + output, extras
//                         held, nor its output unless + o_f+
//                         there are extras to renew
//   forward-keep-input v  inputs; v's output is not   held + output + o_f0       + output
//                         held
//   backward v            v has run forward, and its  held + new gradients + o_b + new gradients,
//                         readers backward; extras,                              - v's extras,
//                         inputs and output that its                             - v's gradient
//                         backward needs
//   discard activation v  v's tensor; v owns its      held                       - the tensor
//                         storage
//   discard saved v       v's extras                  held                       - the extras
//
// - Nothing is freed but what this table says. There is no forward-keep-nothing or reduce.
// - An input is held if its storage is, at the version that the vertex reads in program order. A
//   vertex in place costs no bytes, consumes the version before it and leaves its own; a forward of
//   the owner brings the first one back. A view costs no bytes; once it has run it is there whenever
//   its storage is, made again with it for nothing.
// - A keep-all whose output is held renews the extras: a second copy of the output while it runs,
//   the extras alone afterwards.
// - A forward repeats unless its vertex is collective, must be kept, or is a source (has no inputs:
//   fed from outside). First runs of random, stateful and collective vertices are in program order
//   among themselves.
// - Every vertex, sources included, runs backward exactly once, hence forward at least once.
// - The gradient of a storage appears with the first backward that contributes to it (that of any
//   vertex that reads the storage), and goes with the backward of the storage's owner. The gradient
//   of a storage that no vertex of another storage reads, an output of the network, is there from
//   the first backward of the schedule on.
//
// Transfers, if there is a transfer model, are those of simulate.h by the same table. They move
// tensors (activation v, of a v that owns its storage) and extras (saved v).
//
// - A tensor comes back in the version in which it left. What is there with it, a view, or what was
//   written in place, is away with it.
// - A tensor or extras that leave are held, and may be read, up to their offload-wait; until then
//   nothing may drop them, nor a vertex in place write over the tensor. On the host, and up to their
//   prefetch-wait, they are not held, and may not be computed anew: what the host has of them is
//   discarded first.
//
// Communication is that of simulate.h: a forward or a backward of a collective vertex may be put on
// the communication stream. Tensors are, for who waits for whom,
//
// - the storages. A forward reads those of its inputs and writes its own, but a view, or one that
//   renews extras, which reads it; a backward reads what it needs of inputs and output;
// - that a vertex has run forward: its first forward writes it, its readers and its backward read
//   it. So two that only read a storage do not wait for each other, and a view's readers wait for
//   the view;
// - extras: a keep-all and a backward write those of their vertex;
// - gradients: a backward writes that of its own storage and those of its inputs, also where it adds
//   to what is there.
//
// The peak is the maximum over ops and over the states between them. A chain is the graph whose
// every stage is one op: extras = saved - output, o_b less the new gradient.
#ifndef STOWAGE_SOLVERS_PLAN_GRAPH_SIMULATE_H_
#define STOWAGE_SOLVERS_PLAN_GRAPH_SIMULATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/model/transfer_model.h"
#include "solvers/plan/schedule.h"
#include "solvers/plan/simulate.h"

namespace stowage {

// OK, or INVALID_ARGUMENT that names the first instruction that is not valid and why. `timeline`, if
// given, is filled with one point per instruction. Without a transfer model, no transfer is valid; a
// transfer model that is not valid is INVALID_ARGUMENT as ValidateTransferModel has it. O(V + E + the
// inputs of all instructions).
absl::StatusOr<Simulation> SimulateGraph(const Graph& graph, const Schedule& schedule,
                                         std::vector<TimelinePoint>* timeline = nullptr);
absl::StatusOr<Simulation> SimulateGraph(const Graph& graph, const Schedule& schedule,
                                         const TransferModel& transfers,
                                         std::vector<TimelinePoint>* timeline = nullptr);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_GRAPH_SIMULATE_H_
