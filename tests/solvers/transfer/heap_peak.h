// How many bytes of the heap are in use: a program that links this has its operator new counted.
#ifndef STOWAGE_TESTS_SOLVERS_TRANSFER_HEAP_PEAK_H_
#define STOWAGE_TESTS_SOLVERS_TRANSFER_HEAP_PEAK_H_

#include <cstdint>

namespace stowage::testing {

// The most bytes in use since it was made, less those then. One at a time; counts all threads.
class HeapPeak {
 public:
  HeapPeak();
  int64_t bytes() const;

 private:
  int64_t before_;
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_TRANSFER_HEAP_PEAK_H_
