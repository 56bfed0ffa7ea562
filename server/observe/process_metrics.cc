#include "server/observe/process_metrics.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>

namespace stowage {
namespace {

using prometheus::MetricType;

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

std::optional<double> CpuSeconds() {
  rusage used{};
  if (getrusage(RUSAGE_SELF, &used) != 0) return std::nullopt;
  return Seconds(used.ru_utime) + Seconds(used.ru_stime);
}

// The second number of statm: pages that are in memory.
std::optional<double> ResidentBytes(const std::string& process) {
  std::ifstream statm(process + "/statm");
  int64_t virtual_pages = 0, resident_pages = 0;
  if (!(statm >> virtual_pages >> resident_pages)) return std::nullopt;
  return static_cast<double>(resident_pages) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Less the one that looks.
std::optional<double> OpenFiles(const std::string& process) {
  std::error_code error;
  const std::filesystem::directory_iterator files(process + "/fd", error);
  if (error) return std::nullopt;
  return static_cast<double>(std::distance(begin(files), end(files)) - 1);
}

std::optional<double> MostFiles() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

// Since the epoch: field 22 of stat are the ticks from the start of the system, the fields counted behind the name, which may hold
// anything. Now where it cannot be read.
double StartSeconds(const std::string& process) {
  using Clock = std::chrono::system_clock;
  const double now = std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
  std::ifstream file(process + "/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const size_t name_end = text.rfind(')');
  timespec up{};
  if (name_end == std::string::npos || clock_gettime(CLOCK_BOOTTIME, &up) != 0) return now;
  constexpr int kFieldsBetween = 20;  // from the state, the third, to the start
  size_t at = name_end;
  for (int i = 0; i < kFieldsBetween && at != std::string::npos; ++i) at = text.find(' ', at + 1);
  if (at == std::string::npos) return now;
  const double started =
      std::strtod(text.c_str() + at, nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return now - (static_cast<double>(up.tv_sec) - started);
}

void Add(const char* name, const char* help, MetricType type, std::optional<double> value,
         std::vector<prometheus::MetricFamily>* families) {
  if (!value) return;
  prometheus::ClientMetric metric;
  metric.counter.value = *value;
  metric.gauge.value = *value;
  families->push_back({name, help, type, {metric}});
}

}  // namespace

ProcessMetrics::ProcessMetrics(const ProcessSources& sources)
    : sources_(sources), start_seconds_(StartSeconds(sources.process)) {}

std::vector<prometheus::MetricFamily> ProcessMetrics::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  Add("process_cpu_seconds_total", "Processor time that the process has taken.",
      MetricType::Counter, CpuSeconds(), &families);
  Add("process_resident_memory_bytes", "Memory of the process that is in RAM.", MetricType::Gauge,
      ResidentBytes(sources_.process), &families);
  Add("process_open_fds", "Open file descriptors.", MetricType::Gauge, OpenFiles(sources_.process),
      &families);
  Add("process_max_fds", "Most file descriptors that may be open.", MetricType::Gauge, MostFiles(),
      &families);
  Add("process_start_time_seconds", "When the process began, since the epoch.", MetricType::Gauge,
      start_seconds_, &families);
  Add("stowage_memory_limit_bytes",
      "Memory that the process may take: the least limit of its control groups and the machine.",
      MetricType::Gauge, static_cast<double>(MemoryLimitBytes(sources_)), &families);
  return families;
}

}  // namespace stowage
