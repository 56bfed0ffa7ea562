// How much device memory tensors hold: what profiler and executor measure with. One implementation
// per kind of device.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_MEMORY_METER_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_MEMORY_METER_H_

#include "solvers/model/units.h"

namespace stowage {

class RefusalLog;

// Thread-safe.
class MemoryMeter {
 public:
  virtual ~MemoryMeter() = default;

  // Live bytes at this moment.
  virtual Bytes current() const = 0;
  // Most live bytes since the last ResetPeak.
  virtual Bytes peak() const = 0;
  virtual void ResetPeak() = 0;
  // Most live bytes since the last call of this or of ResetPeak; peaks stay as they are. Of a meter that
  // does not count these apart, peak().
  virtual Bytes TakeRecentPeak() { return peak(); }

  // What the blocks of live tensors take, and its most since the last ResetPeak: more than they asked for, where the
  // allocator has no block of just that size.
  virtual Bytes block_bytes() const { return current(); }
  virtual Bytes peak_block_bytes() const { return peak(); }

  // What the allocator holds of the device for them, and its most since the last ResetPeak: more
  // than is live where it keeps what is freed.
  virtual Bytes reserved() const { return current(); }
  virtual Bytes peak_reserved() const { return peak(); }

  // What is told of memory that was refused; null of a meter that does not tell.
  virtual RefusalLog* refusals() { return nullptr; }
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_MEMORY_METER_H_
