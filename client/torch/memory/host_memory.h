#ifndef STOWAGE_CLIENT_TORCH_MEMORY_HOST_MEMORY_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_HOST_MEMORY_H_

#include <string>

#include "solvers/model/units.h"

namespace stowage {

// Where the system says how much memory there is.
struct MemorySources {
  std::string meminfo = "/proc/meminfo";
  std::string groups_of_process = "/proc/self/cgroup";
  std::string groups = "/sys/fs/cgroup";  // of version 2
};

// Memory that this process can have without anything being swapped out or ended for it: what is available
// on the machine, and in each control group that the process is in (Linux, memory.max). What the system
// does not say counts as unlimited, up to kMaxTotal.
Bytes FreeHostMemory(const MemorySources& sources = {});

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_HOST_MEMORY_H_
