// A Redis of the load generator's own that goes wrong while the service uses it.
#ifndef STOWAGE_TESTS_BENCH_LOAD_REDIS_FAULTS_H_
#define STOWAGE_TESTS_BENCH_LOAD_REDIS_FAULTS_H_

#include <string>

#include "tests/server/store/redis_server.h"

namespace stowage {

// Not thread-safe.
class RedisFaults {
 public:
  // The flag that makes stowaged use it.
  std::string flag() const;

  // The next of: frozen, thawed, killed, started, emptied.
  void Next();
  // Goes on to where it runs.
  void Mend();

 private:
  testing::RedisServer server_;
  int step_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_REDIS_FAULTS_H_
