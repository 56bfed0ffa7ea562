// Redises of the load generator's own that go wrong while the service uses them: that of the plans, and that of decisions.
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
  // It runs, and has lost all it had.
  void Empty();

 private:
  testing::RedisServer server_;
  int step_ = 0;
};

// A durable one, as --decisions_redis wants it. Not thread-safe.
class DurableRedisFaults {
 public:
  // The flag that makes stowaged use it.
  std::string flag() const;

  // The next of: killed, and started again on its folder; frozen, and thawed. It is away for seconds, and runs afterwards.
  void Next();

 private:
  testing::RedisServer server_{testing::Durable()};
  bool kills_next_ = true;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_REDIS_FAULTS_H_
