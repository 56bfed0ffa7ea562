#include "solvers/model/digest.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/escaping.h"

namespace stowage {

std::string Digest::ToBinary() const {
  return std::string(reinterpret_cast<const char*>(bytes_.data()), kSize);
}

std::string Digest::ToHex() const { return absl::BytesToHexString(ToBinary()); }

struct Hasher::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(evp); }
};

Hasher::Hasher() : context_(std::make_unique<Context>()) {
  EVP_DigestInit_ex(context_->evp, EVP_sha256(), nullptr);
}

Hasher::~Hasher() = default;

void Hasher::Update(const void* data, size_t size) { EVP_DigestUpdate(context_->evp, data, size); }

Digest Hasher::Finish() {
  std::array<uint8_t, Digest::kSize> bytes{};
  EVP_DigestFinal_ex(context_->evp, bytes.data(), nullptr);
  return Digest(bytes);
}

Digest Sha256(const std::string& bytes) {
  Hasher hasher;
  hasher.Update(bytes.data(), bytes.size());
  return hasher.Finish();
}

Digest KeyedSha256(const std::string& key, const std::string& bytes) {
  std::array<uint8_t, Digest::kSize> mac{};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), mac.data(), nullptr);
  return Digest(mac);
}

bool SameSecretly(const Digest& a, const Digest& b) {
  return CRYPTO_memcmp(a.bytes().data(), b.bytes().data(), Digest::kSize) == 0;
}

std::optional<Digest> DigestFromHex(const std::string& hex) {
  if (hex.size() != 2 * Digest::kSize) return std::nullopt;
  for (const char digit : hex) {
    if (!(digit >= '0' && digit <= '9') && !(digit >= 'a' && digit <= 'f')) return std::nullopt;
  }
  const std::string binary = absl::HexStringToBytes(hex);
  std::array<uint8_t, Digest::kSize> bytes;
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(binary[i]);
  return Digest(bytes);
}

}  // namespace stowage
