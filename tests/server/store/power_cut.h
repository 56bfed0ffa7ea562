// Files of SQLite whose power can be cut: what a disk has after that is what was synced, and nothing
// that was not.
#ifndef STOWAGE_TESTS_SERVER_STORE_POWER_CUT_H_
#define STOWAGE_TESTS_SERVER_STORE_POWER_CUT_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace stowage::testing {

// All SQLite databases that this process opens while it is there have such files; one at a time, and
// it outlives them.
class PowerCut {
 public:
  PowerCut();
  ~PowerCut();
  PowerCut(const PowerCut&) = delete;
  PowerCut& operator=(const PowerCut&) = delete;

  // After so many writes, truncations and syncs the power is off: each of these fails, and nothing
  // more is kept.
  void After(int64_t operations);
  bool is_off() const;
  int64_t operations() const;  // since the beginning

  // What a disk that lost its power now would have of the files in `folder`, put into `other`.
  void Recover(const std::string& folder, const std::string& other) const;

  // Of the files, which are not the test's to call.
  bool Operate();
  void Synced(const std::string& path);
  void Deleted(const std::string& path);

 private:
  mutable std::mutex mutex_;
  int64_t operations_ = 0;
  int64_t last_ = INT64_MAX;
  std::map<std::string, std::string> synced_;  // contents by path
};

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_STORE_POWER_CUT_H_
