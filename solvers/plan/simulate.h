// The referee: replays a schedule on a chain and says whether it is valid, how long it takes and
// how much memory it needs. Independent of all solvers; nothing leaves the library that it has not
// accepted.
//
// Accounting (Beaumont et al. 2019, Table 1, with the overheads of a forward that saves and one
// that does not kept apart). Held is what is stored: a^0 and the seed gradient delta^{L+1} from the
// start, and below.
//
//   op                     needs                      while it runs        afterwards
//   forward-keep-all l     a^{l-1} or saved l-1       held + saved + o_f+  + saved l
//   forward-keep-input l   a^{l-1} or saved l-1       held + a + o_f0      + a^l
//   forward-keep-nothing l plain a^{l-1}              held + a + o_f0      + a^l, - a^{l-1}
//   backward l             delta^l, saved l, and      held + o_b           + delta^{l-1}, - delta^l,
//                          a^{l-1} or saved l-1                            - saved l, - plain a^{l-1}
//   discard                the tensor                 held                 - the tensor
//   reduce l               saved l                    held                 saved l becomes a^l
//
// The peak is the maximum over ops and over the states between them. A tensor that is held may not
// be computed again, a stage that must be kept may not run forward twice, backwards run once each
// from L+1 down to 1.
//
// Transfers move a^0..a^L and saved 1..L+1 between device and host memory, if there is a transfer
// model. Compute runs the instructions in order; a start takes no time there and puts a copy on its
// channel, a wait holds compute up until that copy has ended.
//
//   op              needs                        device memory               host memory
//   offload-start   the tensor, of which the     held                        + the tensor
//                   host has nothing
//   offload-wait    that the offload started     held, then - the tensor     kept
//   prefetch-start  the tensor on the host       + the tensor                kept
//   prefetch-wait   that the prefetch started    held                        - the tensor
//   discard         the tensor on the host       held                        - the tensor
//
// - Where a stage lists its saved tensors, the parts of saved l (Stage::parts) go and come singly too,
//   each by the same table. Saved l is held while its last part is, the rest with the output: a
//   forward or a backward of stage l+1 may read that while other parts are away. Backward l needs all
//   parts; saved l goes as a whole when all are here, and is not made anew while any is not; discard
//   and reduce drop with it the parts that the host has, but none on its way.
// - A tensor that leaves is held, and may be read, up to its offload-wait; until then nothing may
//   drop it. On the host, and up to its prefetch-wait, it is not held, and it may not be computed
//   anew: its copy there is discarded first.
// - A copy starts when compute reaches its start and the copy before it on its channel has ended; it
//   takes the latency and its bytes over the bandwidth, rounded up. Half duplex: one channel. Full
//   duplex: one per direction.
// - Host memory is bounded. Every copy that starts has its wait; what is on the host may stay there.
// - The makespan is that of compute, waits included.
//
// Communication. A forward or a backward of a collective stage may be put on the communication stream
// (Instruction::stream), nothing else may. What it needs and what it leaves behind is as above, from
// when compute reaches it. What differs is time, and memory until compute has waited for it:
//
// - It starts when compute reaches it and the op before it on its stream has ended; compute goes on
//   at once. Copies run beside it and take nothing from it.
// - An instruction of any other stream waits until it has ended if it reads a tensor that the op
//   writes, or writes one that the op reads or writes. To make, to drop and to offload-wait is to
//   write, to offload-start is to read. The wait is idle time; the instruction starts after it.
// - Tensors are a^l, saved l part by part, and gradients. A forward or a backward of l reads the
//   plain a^{l-1} where it is held, else of saved l-1 the last part, which has the output.
// - While it runs it takes the memory that the table says, or what it leaves behind if that is more.
//   It keeps that much, overheads and what it drops included, until an instruction waits for it, or
//   for one after it on its stream. One that finds it ended waits no time, yet frees as much: what
//   memory a schedule takes does not depend on times.
// - The makespan includes the end of the last one, the idle time the wait for it.
//
// The same schedule with all on compute takes no less time, at most communication_time more, and has
// no higher peak. With one op less there it may be faster: an op may have to wait for one that it has
// nothing to do with.
#ifndef STOWAGE_SOLVERS_PLAN_SIMULATE_H_
#define STOWAGE_SOLVERS_PLAN_SIMULATE_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/plan/schedule.h"

namespace stowage {

struct Simulation {
  Nanos makespan;
  Bytes peak;
  Nanos recompute_time;  // part of the makespan that repeats a forward
  Nanos idle_time;       // part in which the compute stream waits
  int recomputed_forwards = 0;
  size_t peak_instruction = 0;  // the first at which the peak is reached
  Bytes host_peak;              // of what is offloaded
  Bytes sent;                   // to the host, all copies
  Bytes fetched;                // from the host
  Nanos communication_time;     // of what runs on the communication stream
};

// What one instruction did, in order. The start of a copy spans the copy, on its channel; a
// communication its time on its stream.
struct TimelinePoint {
  Nanos start;
  Nanos end;
  Bytes running;  // memory while it runs; of a communication, what compute leaves to it
  Bytes held;     // memory after it
  Bytes host;     // host memory after it
};

// OK, or INVALID_ARGUMENT that names the first instruction that is not valid and why. `timeline`,
// if given, is filled with one point per instruction. Without a transfer model, no transfer is
// valid; a transfer model that is not valid is INVALID_ARGUMENT as ValidateTransferModel has it.
// O(instructions + L).
absl::StatusOr<Simulation> Simulate(const Chain& chain, const Schedule& schedule,
                                    std::vector<TimelinePoint>* timeline = nullptr);
absl::StatusOr<Simulation> Simulate(const Chain& chain, const Schedule& schedule,
                                    const TransferModel& transfers,
                                    std::vector<TimelinePoint>* timeline = nullptr);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_PLAN_SIMULATE_H_
