// Profiles for the tests of the server.
#ifndef STOWAGE_TESTS_SERVER_SUPPORT_PROFILES_H_
#define STOWAGE_TESTS_SERVER_SUPPORT_PROFILES_H_

#include <cstdint>
#include <vector>

#include "solvers/model/problem.h"
#include "solvers/model/units.h"

namespace stowage::testing {

struct ProfileShape {
  int stages = 6;
  int64_t output = 100;       // bytes, structure
  int64_t overhead = 0;       // bytes of each of the three overheads
  int64_t forward_time = 10;  // ns
  bool timed = true;          // else all times are 0
  int64_t host_memory = 0;    // bytes, environment
  int64_t bandwidth = 0;      // bytes per second each way; 0: not measured, hence no link
  int64_t latency = 0;        // ns of each copy
  int32_t link_class = 0;     // stated; 0: the key goes by the bandwidth
};

// A chain whose plans recompute when the budget is below store-all. Any two of equal stages, output,
// host memory and class of the link have one key.
Profile ChainProfile(const ProfileShape& shape);
Profile ProfileOfLength(int stages);

// A graph of `vertices` in a row; vertex i has the id first_id + i * step.
Profile GraphProfile(int vertices, int64_t first_id, int64_t step);

// Budgets of ChainProfile({}): with recomputations, and a byte below what plain training takes.
inline constexpr Bytes kTight{1500}, kJustShort{1599};

// Peak of store-all on the profile.
Bytes StoreAllPeak(const Profile& profile);

// The least budget of any memory-persistent schedule.
Bytes LeastPeak(const Profile& profile);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_SUPPORT_PROFILES_H_
