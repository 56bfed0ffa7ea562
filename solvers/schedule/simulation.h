// What a replay of a schedule measures: time, memory, copies.
#ifndef STOWAGE_SOLVERS_SCHEDULE_SIMULATION_H_
#define STOWAGE_SOLVERS_SCHEDULE_SIMULATION_H_

#include <cstddef>

#include "solvers/model/units.h"

namespace stowage {

struct Simulation {
  Nanos makespan;
  Bytes peak;
  Nanos recompute_time;  // part of the makespan that repeats a forward
  Nanos idle_time;       // part in which the compute stream waits
  int recomputed_forwards = 0;
  size_t peak_instruction = 0;  // the first at which the peak is reached
  Bytes host_peak;              // of what is offloaded
  Bytes offloaded;              // to the host, all copies
  Bytes prefetched;             // from the host
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

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_SCHEDULE_SIMULATION_H_
