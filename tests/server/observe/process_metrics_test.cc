#include "server/observe/process_metrics.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace stowage {
namespace {

namespace fs = std::filesystem;

std::map<std::string, double> Values(const ProcessMetrics& metrics) {
  std::map<std::string, double> values;
  for (const prometheus::MetricFamily& family : metrics.Collect()) {
    EXPECT_EQ(family.metric.size(), 1u) << family.name;
    EXPECT_FALSE(family.help.empty()) << family.name;
    const bool counter = family.type == prometheus::MetricType::Counter;
    values[family.name] = counter ? family.metric[0].counter.value : family.metric[0].gauge.value;
  }
  return values;
}

TEST(ProcessMetrics, MemoryIsWhatThisProcessHasTouched) {
  const ProcessMetrics metrics;
  const double before = Values(metrics)["process_resident_memory_bytes"];
  constexpr size_t kBytes = size_t{64} << 20;
  const std::vector<char> touched(kBytes, 1);
  const double after = Values(metrics)["process_resident_memory_bytes"];
  EXPECT_GT(before, 1 << 20);
  EXPECT_GE(after - before, 0.9 * kBytes) << touched[kBytes / 2];
}

TEST(ProcessMetrics, CountsOpenFiles) {
  const ProcessMetrics metrics;
  const double before = Values(metrics)["process_open_fds"];
  {
    const std::ifstream one("/proc/self/statm"), two("/proc/self/statm");
    EXPECT_EQ(Values(metrics)["process_open_fds"], before + 2);
  }
  EXPECT_EQ(Values(metrics)["process_open_fds"], before);
  EXPECT_GE(Values(metrics)["process_max_fds"], before + 2);
}

TEST(ProcessMetrics, ProcessorTimeGrowsWithWork) {
  const ProcessMetrics metrics;
  const double before = Values(metrics)["process_cpu_seconds_total"];
  volatile double sink = 0;
  while (Values(metrics)["process_cpu_seconds_total"] < before + 0.02) {
    for (int i = 0; i < 100000; ++i) sink = sink + i;
  }
}

TEST(ProcessMetrics, StartedBeforeNowAndNotLongAgo) {
  const ProcessMetrics metrics;
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const double start = Values(metrics)["process_start_time_seconds"];
  EXPECT_LE(start, now + 2);  // ticks and clocks are rounded
  EXPECT_GT(start, now - 3600);
  EXPECT_EQ(Values(metrics)["process_start_time_seconds"], start);
}

// A process of a group two below the root; every group may have a limit.
class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() : root_(fs::temp_directory_path() / ("limit_" + std::to_string(getpid()))) {
    sources_ = {(root_ / "process").string(), (root_ / "groups").string()};
    fs::create_directories(sources_.process);
    fs::create_directories(sources_.control_groups + "/system.slice/stowaged.service");
    machine_ = MemoryLimitBytes(sources_);
    Write(sources_.process + "/cgroup", "0::/system.slice/stowaged.service\n");
  }
  ~MemoryLimitTest() override { fs::remove_all(root_); }

  static void Write(const std::string& file, const std::string& text) {
    std::ofstream(file) << text;
  }
  void Limit(const std::string& group, const std::string& text) {
    Write(sources_.control_groups + group + "/memory.max", text + "\n");
  }

  const fs::path root_;
  ProcessSources sources_;
  int64_t machine_ = 0;
};

TEST_F(MemoryLimitTest, IsTheMachinesWhereNoGroupHasOne) {
  EXPECT_EQ(MemoryLimitBytes(sources_), machine_);
  EXPECT_EQ(machine_, int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE));
  Limit("/system.slice/stowaged.service", "max");
  EXPECT_EQ(MemoryLimitBytes(sources_), machine_);
}

TEST_F(MemoryLimitTest, IsTheGroups) {
  Limit("/system.slice/stowaged.service", "1073741824");
  Limit("/system.slice", "max");
  EXPECT_EQ(MemoryLimitBytes(sources_), 1073741824);
}

TEST_F(MemoryLimitTest, IsThatOfAGroupAboveIfLess) {
  Limit("/system.slice/stowaged.service", "1073741824");
  Limit("/system.slice", "4096000");
  EXPECT_EQ(MemoryLimitBytes(sources_), 4096000);
}

TEST_F(MemoryLimitTest, IsThatOfTheRootInAContainer) {
  Write(sources_.process + "/cgroup", "0::/\n");
  Limit("", "2097152");
  EXPECT_EQ(MemoryLimitBytes(sources_), 2097152);
}

TEST_F(MemoryLimitTest, IsNeverOverTheMachines) {
  Limit("/system.slice", std::to_string(2 * machine_));
  EXPECT_EQ(MemoryLimitBytes(sources_), machine_);
}

TEST_F(MemoryLimitTest, OfVersionOneIsNotLookedAt) {
  Write(sources_.process + "/cgroup", "9:memory:/x\n0::/system.slice\n");
  Limit("/system.slice", "8192000");
  EXPECT_EQ(MemoryLimitBytes(sources_), 8192000);
}

TEST_F(MemoryLimitTest, ProcessorsAreTheQuotaOfTheGroupsRoundedUp) {
  const int machine = ProcessorLimit(sources_);
  EXPECT_EQ(machine, static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
  const std::string group = sources_.control_groups + "/system.slice/stowaged.service/cpu.max";
  Write(group, "max 100000\n");
  EXPECT_EQ(ProcessorLimit(sources_), machine);
  Write(group, std::to_string(100000 * (machine + 1)) + " 100000\n");
  EXPECT_EQ(ProcessorLimit(sources_), machine);
  for (const char* quota : {"100000 100000\n", "1000 100000\n", "50000 50000\n"}) {
    Write(group, quota);
    EXPECT_EQ(ProcessorLimit(sources_), 1) << quota;
  }
  Write(group, "max 100000\n");
  Write(sources_.control_groups + "/system.slice/cpu.max", "20000 100000\n");
  EXPECT_EQ(ProcessorLimit(sources_), 1) << "of a group above";
}

TEST_F(MemoryLimitTest, WhatCannotBeReadIsLeftOut) {
  std::map<std::string, double> values = Values(ProcessMetrics(sources_));
  EXPECT_EQ(values.count("process_resident_memory_bytes"), 0u);
  EXPECT_EQ(values.count("process_open_fds"), 0u);
  EXPECT_EQ(values.count("stowage_memory_limit_bytes"), 1u);
}

}  // namespace
}  // namespace stowage
