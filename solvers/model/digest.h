// SHA-256. The only file of solvers/ that includes OpenSSL is digest.cc.
#ifndef STOWAGE_SOLVERS_MODEL_DIGEST_H_
#define STOWAGE_SOLVERS_MODEL_DIGEST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace stowage {

class Digest {
 public:
  static constexpr size_t kSize = 32;

  Digest() = default;
  explicit Digest(const std::array<uint8_t, kSize>& bytes) : bytes_(bytes) {}

  const std::array<uint8_t, kSize>& bytes() const { return bytes_; }
  std::string ToHex() const;
  std::string ToBinary() const;

  friend bool operator==(const Digest& a, const Digest& b) { return a.bytes_ == b.bytes_; }
  friend bool operator!=(const Digest& a, const Digest& b) { return !(a == b); }
  friend bool operator<(const Digest& a, const Digest& b) { return a.bytes_ < b.bytes_; }

  template <class H>
  friend H AbslHashValue(H state, const Digest& d) {
    return H::combine(std::move(state), d.bytes_);
  }

 private:
  std::array<uint8_t, kSize> bytes_{};
};

// SHA-256 of a stream of bytes. Not thread-safe; one use per object.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void Update(const void* data, size_t size);
  Digest Finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Digest Sha256(const std::string& bytes);

// HMAC-SHA256 (RFC 2104): who does not have the key makes none that is right.
Digest KeyedSha256(const std::string& key, const std::string& bytes);

// As ==, in a time that says nothing about where they differ.
bool SameSecretly(const Digest& a, const Digest& b);

// Digests as programs write them into text.

// Only what Digest::ToHex writes: 64 digits, small letters.
std::optional<Digest> DigestFromHex(const std::string& hex);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_DIGEST_H_
