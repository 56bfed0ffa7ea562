#include "server/observe/process_limits.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <string_view>
#include <thread>

namespace stowage {
namespace {

// Of a file that says "max" for no limit.
std::optional<int64_t> LimitIn(const std::string& file) {
  std::ifstream in(file);
  int64_t bytes = 0;
  if (!(in >> bytes)) return std::nullopt;
  return bytes;
}

// Processors of a file that has "QUOTA PERIOD" in microseconds, or "max PERIOD".
std::optional<int64_t> ProcessorsIn(const std::string& file) {
  std::ifstream in(file);
  int64_t quota = 0, period = 0;
  if (!(in >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return (quota - 1) / period + 1;
}

// "/system.slice/stowaged.service"; "/" in a container, which sees its own group as the root.
std::string ControlGroup(const std::string& process) {
  std::ifstream groups(process + "/cgroup");
  constexpr std::string_view kUnified = "0::";
  for (std::string line; std::getline(groups, line);) {
    if (line.rfind(kUnified, 0) == 0) return line.substr(kUnified.size());
  }
  return "/";
}

// Of the process's group and those above it, and `least`.
int64_t LeastOfGroups(const ProcessSources& sources, const std::string& file, int64_t least,
                      const std::function<std::optional<int64_t>(const std::string&)>& read) {
  for (std::string group = ControlGroup(sources.process); !group.empty();) {
    const auto limit = read(sources.control_groups + group + file);
    least = std::min(least, limit.value_or(least));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos || group == "/") break;
    group = slash == 0 ? "/" : group.substr(0, slash);
  }
  return least;
}

}  // namespace

int64_t MemoryLimitBytes(const ProcessSources& sources) {
  const int64_t machine = int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  return LeastOfGroups(sources, "/memory.max", machine, LimitIn);
}

int ProcessorLimit(const ProcessSources& sources) {
  const int64_t machine = std::max(1U, std::thread::hardware_concurrency());
  return static_cast<int>(LeastOfGroups(sources, "/cpu.max", machine, ProcessorsIn));
}

}  // namespace stowage
