#include "solvers/model/digest_text.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/escaping.h"

namespace stowage {

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
