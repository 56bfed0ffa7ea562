#include "client/torch/memory/host_memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace stowage {
namespace {

class HostMemoryTest : public testing::Test {
 protected:
  HostMemoryTest() : root_(testing::TempDir() + "/host_memory") {
    std::filesystem::remove_all(root_);
    sources_ = {root_ + "/meminfo", root_ + "/groups", root_ + "/cgroup"};
  }

  void Write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path(root_ + "/" + file);
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  void WriteGroup(const std::string& group, const std::string& limit, int64_t used) const {
    Write("cgroup" + group + "/memory.max", limit + "\n");
    Write("cgroup" + group + "/memory.current", std::to_string(used) + "\n");
  }

  const std::string root_;
  MemorySources sources_;
};

TEST_F(HostMemoryTest, WhatTheSystemDoesNotSayIsNoLimit) {
  EXPECT_EQ(FreeHostMemory(sources_), Bytes(kMaxTotal));
}

TEST_F(HostMemoryTest, OfAMachineItIsWhatIsAvailable) {
  Write("meminfo", "MemTotal:  900 kB\nMemFree:  10 kB\nMemAvailable:  300 kB\nSwapFree: 5 kB\n");
  EXPECT_EQ(FreeHostMemory(sources_), Bytes(300 * 1024));
}

TEST_F(HostMemoryTest, EveryGroupThatTheProcessIsInHasItsLimit) {
  Write("meminfo", "MemAvailable:  300 kB\n");
  Write("groups", "1:name=systemd:/old\n0::/jobs/one\n");
  WriteGroup("/jobs/one", "max", 5000);
  WriteGroup("/jobs", "100000", 60000);
  EXPECT_EQ(FreeHostMemory(sources_), Bytes(40000));
  // Cached files can go.
  Write("cgroup/jobs/memory.stat", "anon 50000\ninactive_file 10000\nactive_file 7\n");
  EXPECT_EQ(FreeHostMemory(sources_), Bytes(50000));
  WriteGroup("/jobs/one", "20000", 5000);
  EXPECT_EQ(FreeHostMemory(sources_), Bytes(15000));
  WriteGroup("/jobs/one", "4000", 5000);
  EXPECT_EQ(FreeHostMemory(sources_), Bytes(0));
}

TEST_F(HostMemoryTest, AContainerSeesItsGroupAsTheRoot) {
  Write("groups", "0::/\n");
  WriteGroup("", "70000", 10000);
  EXPECT_EQ(FreeHostMemory(sources_), Bytes(60000));
}

TEST_F(HostMemoryTest, HereThereIsSome) { EXPECT_GT(FreeHostMemory(), Bytes(0)); }

}  // namespace
}  // namespace stowage
