// A real stowaged on a free port.
#ifndef STOWAGE_TESTS_SUPPORT_STOWAGED_PROCESS_H_
#define STOWAGE_TESTS_SUPPORT_STOWAGED_PROCESS_H_

#include <string>
#include <vector>

#include "tests/server/process/child_process.h"

namespace stowage {

// It ends with the object.
class StowagedProcess {
 public:
  // Keeps plans in memory alone and listens on this machine, unless `flags` say otherwise. Returns when it
  // listens; the address is empty if it does not.
  explicit StowagedProcess(const std::vector<std::string>& flags = {});

  const std::string& address() const { return address_; }
  // As an operator stops it; its exit code.
  int Stop();
  // As a machine goes away.
  void Kill();

 private:
  testing::ChildProcess process_;
  std::string address_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_SUPPORT_STOWAGED_PROCESS_H_
