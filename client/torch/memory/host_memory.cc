#include "client/torch/memory/host_memory.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string_view>

namespace stowage {
namespace {

// Of a file with a number alone; nothing if it has none, such as "max".
std::optional<int64_t> NumberIn(const std::string& file) {
  std::ifstream in(file);
  int64_t number = 0;
  if (!(in >> number)) return std::nullopt;
  return number;
}

// Of a file with a name and a number on each line.
std::optional<int64_t> NumberIn(const std::string& file, std::string_view name) {
  std::ifstream in(file);
  std::string found, rest;
  for (int64_t number = 0; in >> found >> number; std::getline(in, rest)) {
    if (found == name) return number;
  }
  return std::nullopt;
}

// "/system.slice/training.service"; "/" in a container, which sees its own group as the root.
std::string ControlGroup(const std::string& file) {
  std::ifstream in(file);
  constexpr std::string_view kUnified = "0::";
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(kUnified, 0) == 0) return line.substr(kUnified.size());
  }
  return "/";
}

// Cached files count as used and go when memory is wanted.
int64_t FreeIn(const std::string& group) {
  const std::optional<int64_t> limit = NumberIn(group + "/memory.max");
  const std::optional<int64_t> used = NumberIn(group + "/memory.current");
  if (!limit || !used) return kMaxTotal;
  const int64_t cached = NumberIn(group + "/memory.stat", "inactive_file").value_or(0);
  return std::max<int64_t>(*limit - *used + cached, 0);
}

}  // namespace

Bytes FreeHostMemory(const MemorySources& sources) {
  int64_t least = kMaxTotal;
  const std::optional<int64_t> available = NumberIn(sources.meminfo, "MemAvailable:");
  if (available) least = *available * 1024;
  for (std::string group = ControlGroup(sources.groups_of_process);;) {
    least = std::min(least, FreeIn(sources.groups + group));
    const size_t slash = group.rfind('/');
    if (slash == std::string::npos || group == "/") return Bytes(least);
    group = slash == 0 ? "/" : group.substr(0, slash);
  }
}

}  // namespace stowage
