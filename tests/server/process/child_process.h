// A child with its output in a pipe.
#ifndef STOWAGE_TESTS_SERVER_PROCESS_CHILD_PROCESS_H_
#define STOWAGE_TESTS_SERVER_PROCESS_CHILD_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace stowage::testing {

// Not thread-safe; the child ends with the thread that made it. Standard output and standard error come as one text.
class ChildProcess {
 public:
  // arguments[0] is the binary.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  ~ChildProcess();  // kills it if it still runs

  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // All output up to the first occurrence of `text`, or all there was after 10 s or at its end.
  std::string ReadUntil(const std::string& text);
  // Takes what it has said by now: one that says much stops once nobody takes it.
  void DropOutput();

  void Signal(int number);
  pid_t pid() const { return pid_; }

  // Exit code; 128 + signal when a signal ended it; -1 when it still runs after `patience`.
  int Wait(std::chrono::milliseconds patience = std::chrono::seconds(20));

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  bool ended_ = false;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_PROCESS_CHILD_PROCESS_H_
