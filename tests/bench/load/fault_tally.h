// The kinds of faults that a load with crashes has: how often each came, and why one did not.
#ifndef STOWAGE_TESTS_BENCH_LOAD_FAULT_TALLY_H_
#define STOWAGE_TESTS_BENCH_LOAD_FAULT_TALLY_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace stowage {

struct FaultKind {
  std::string name;  // as --allow_skipped says it
  std::string what;
};

// kill, stop, disk, clock, redis, failover, decisions.
const std::vector<FaultKind>& FaultKinds();

// INVALID_ARGUMENT for one that is no kind's.
absl::Status CheckFaultNames(const std::set<std::string>& names);

// Takes names of kinds. Not thread-safe.
class FaultTally {
 public:
  void Came(const std::string& name) { ++came_[name]; }
  void Cannot(const std::string& name, const std::string& why) { cannot_[name] = why; }

  // It is no fault of this load: neither reported nor missed.
  void LeaveOut(const std::string& name) { left_out_.insert(name); }

  // All but those that are left out.
  std::vector<FaultKind> Kinds() const;
  // A line for each of these.
  std::string Report() const;
  // FAILED_PRECONDITION with each kind that cannot come, and why, but for those of `allowed`.
  absl::Status CheckPossible(const std::set<std::string>& allowed) const;
  // FAILED_PRECONDITION with each kind that never came, and why, but for those of `allowed`.
  absl::Status Judge(const std::set<std::string>& allowed) const;

 private:
  int TimesOf(const std::string& name) const;
  std::string WhyNot(const std::string& name) const;
  absl::Status Missing(const std::vector<std::string>& names, const std::string& what) const;

  std::map<std::string, int> came_;
  std::map<std::string, std::string> cannot_;
  std::set<std::string> left_out_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_FAULT_TALLY_H_
