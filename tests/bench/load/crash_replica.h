// A server that a load with crashes breaks: its process, its files, its clock.
#ifndef STOWAGE_TESTS_BENCH_LOAD_CRASH_REPLICA_H_
#define STOWAGE_TESTS_BENCH_LOAD_CRASH_REPLICA_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tests/bench/load/service_process.h"
#include "tests/support/temporary_folder.h"

namespace stowage {

// A file system of its own, which can be filled up; a folder where none may be mounted.
class SmallDisk {
 public:
  SmallDisk();
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  // Empty, or why it cannot be filled.
  const std::string& why_not() const { return why_not_; }
  std::string PathOf(const std::string& name) const { return folder_ / name; }
  void Fill();
  void Empty();
  // Whatever is on it. INTERNAL: something stays.
  absl::Status LoseFiles();

 private:
  const TemporaryFolder folder_;
  std::string why_not_;
};

// A stowaged on its own files, at one address for all its lives. Not thread-safe.
class CrashReplica {
 public:
  // `stowaged` without --listen, --store, --decisions_file. `faketime`: the library of libfaketime; empty: the
  // clock is the machine's.
  CrashReplica(const std::vector<std::string>& stowaged, const std::string& faketime);

  absl::Status Start();
  void Kill();
  void Stop();
  void Continue();
  // All its files, of plans and of decisions; for one that is killed. INTERNAL: something stays.
  absl::Status LoseDisk();
  // Which of its disks it has: each one that it has lost counts. Thread-safe.
  int disk_number() const { return disk_number_; }
  // The clock from now on, as seconds beside the right one.
  void SetClock(int seconds);

  bool has_own_clock() const { return has_own_clock_; }
  const std::string& address() const { return address_; }
  int64_t resident_bytes() const { return process_->resident_bytes(); }

  SmallDisk disk;

 private:
  const TemporaryFolder times_;
  const std::string clock_ = times_ / "clock";
  const bool has_own_clock_;
  std::vector<std::string> command_;
  std::string address_;
  std::atomic<int> disk_number_{0};
  std::unique_ptr<ServiceProcess> process_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_CRASH_REPLICA_H_
