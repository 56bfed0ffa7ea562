// What the calling thread holds of the TrackingAllocator's memory, whatever others do meanwhile. Of a meter that counts for all
// threads at once, as that of a GPU does, nothing is known.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_THREAD_MEMORY_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_THREAD_MEMORY_H_

#include <optional>

#include "client/torch/memory/memory_meter.h"
#include "solvers/model/units.h"

namespace stowage {

// Bytes that it has allocated less those that it has freed, from some start on: two calls tell what it did
// between them.
std::optional<Bytes> HeldByThread(const MemoryMeter& meter);

// Most of HeldByThread since the thread's last ResetThreadPeak.
std::optional<Bytes> ThreadPeak(const MemoryMeter& meter);
void ResetThreadPeak();

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_THREAD_MEMORY_H_
