#include "tests/bench/load/crash_replica.h"

#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

namespace stowage {

SmallDisk::SmallDisk() {
  if (mount("none", folder_.path().c_str(), "tmpfs", 0, "size=48m,mode=0700") == 0) return;
  why_not_ = absl::StrCat("no tmpfs may be mounted: ", std::strerror(errno));
}

SmallDisk::~SmallDisk() {
  if (why_not_.empty()) umount2(folder_.path().c_str(), MNT_DETACH);
}

void SmallDisk::Fill() {
  std::ofstream file(PathOf("filler"), std::ios::binary);
  const std::string block(65536, 'x');
  while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
  }
}

void SmallDisk::Empty() { unlink(PathOf("filler").c_str()); }

absl::Status SmallDisk::LoseFiles() {
  std::error_code error;
  for (const auto& file : std::filesystem::directory_iterator(folder_.path(), error)) {
    std::filesystem::remove_all(file.path(), error);
    if (error) break;
  }
  if (!error) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(folder_.path(), ": cannot be emptied: ", error.message()));
}

CrashReplica::CrashReplica(const std::vector<std::string>& stowaged, const std::string& faketime)
    : has_own_clock_(!faketime.empty()), command_(stowaged) {
  SetClock(0);
  if (has_own_clock_) {
    command_.insert(command_.begin(),
                    {"/usr/bin/env", "LD_PRELOAD=" + faketime, "FAKETIME_TIMESTAMP_FILE=" + clock_,
                     "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"});
  }
  command_.push_back("--store=sqlite:" + disk.PathOf("plans.db"));
  command_.push_back("--decisions_file=" + disk.PathOf("decisions.db"));
}

absl::Status CrashReplica::Start() {
  std::vector<std::string> command = command_;
  command.push_back("--listen=" + (address_.empty() ? "127.0.0.1:0" : address_));
  absl::StatusOr<ServiceProcess> started = ServiceProcess::Start(command);
  for (int i = 0; i < 20 && !started.ok(); ++i) {  // the port may be somebody else's for a moment
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
    started = ServiceProcess::Start(command);
  }
  if (!started.ok()) return started.status();
  process_ = std::make_unique<ServiceProcess>(*std::move(started));
  address_ = process_->address();
  return absl::OkStatus();
}

void CrashReplica::Kill() {
  process_->process().Signal(SIGKILL);
  process_->process().Wait();
}

void CrashReplica::Stop() { process_->process().Signal(SIGSTOP); }

void CrashReplica::Continue() { process_->process().Signal(SIGCONT); }

absl::Status CrashReplica::LoseDisk() {
  ++disk_number_;
  return disk.LoseFiles();
}

void CrashReplica::SetClock(int seconds) {
  std::ofstream(clock_) << (seconds < 0 ? "" : "+") << seconds << "\n";
}

}  // namespace stowage
