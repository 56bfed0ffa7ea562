// The secret keys under which what goes into a store that others can write to is sealed once more.
//
//   bytes         as they are sealed without a key (sealed_bytes.h)
//   HMAC-SHA256   32 bytes, under a key, of the name in the store, a zero byte, and the bytes before
//
// Who can write there, but has none of the keys, can take entries away, and bring back under its own name
// what was there before; nothing else of it is taken for an entry.
#ifndef STOWAGE_SERVER_ENTRIES_ENTRY_KEYS_H_
#define STOWAGE_SERVER_ENTRIES_ENTRY_KEYS_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stowage {

// Thread-safe.
class EntryKeys {
 public:
  // One or more.
  using Keys = std::vector<std::string>;

  explicit EntryKeys(Keys keys) { Set(std::move(keys)); }

  // Of a text with a key a line, 64 hexadecimal digits: the first one seals, and what any of them has sealed is
  // opened. Lines may be blank, or comments from a #. INVALID_ARGUMENT that names `path`, line and rule, and
  // nothing that is in it.
  static absl::StatusOr<Keys> Parse(const std::string& path, const std::string& text);

  // These hold from now on.
  void Set(Keys keys);

  std::string Seal(const std::string& name, std::string bytes) const;
  // The bytes that were sealed. DATA_LOSS: under none of the keys, or under another name.
  absl::StatusOr<std::string> Open(const std::string& name, std::string bytes) const;

 private:
  std::shared_ptr<const Keys> keys() const;

  mutable std::mutex mutex_;
  std::shared_ptr<const Keys> keys_;
};

// With null keys these are the bytes themselves.
std::string SealUnder(const EntryKeys* keys, const std::string& name, std::string bytes);
absl::StatusOr<std::string> OpenUnder(const EntryKeys* keys, const std::string& name,
                                      std::string bytes);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_ENTRY_KEYS_H_
