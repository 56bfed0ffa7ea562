// What the system lets the process take: of memory and of processors.
#ifndef STOWAGE_SERVER_OBSERVE_PROCESS_LIMITS_H_
#define STOWAGE_SERVER_OBSERVE_PROCESS_LIMITS_H_

#include <cstdint>
#include <string>

namespace stowage {

// The folders of the system.
struct ProcessSources {
  std::string process = "/proc/self";
  std::string control_groups = "/sys/fs/cgroup";
};

// The least `memory.max` of the process's control group (version 2) and those above it; the memory of the
// machine where none has one, or less than it.
int64_t MemoryLimitBytes(const ProcessSources& sources = {});

// Processors that the process may keep busy: the machine's, or the least `cpu.max` of the same groups,
// rounded up. At least 1.
int ProcessorLimit(const ProcessSources& sources = {});

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_PROCESS_LIMITS_H_
