#include "server/entries/sealed_bytes.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "solvers/model/digest.h"

namespace stowage {
namespace {

constexpr char kMagic[] = "STWE";
constexpr size_t kMagicSize = sizeof kMagic - 1;
constexpr size_t kHeaderSize = kMagicSize + 4 + 8;

void AppendLittleEndian(uint64_t value, size_t size, std::string* out) {
  for (size_t i = 0; i < size; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t LittleEndianAt(const std::string& bytes, size_t position, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) {
    value |= uint64_t{static_cast<uint8_t>(bytes[position + i])} << (8 * i);
  }
  return value;
}

std::string DigestOf(const std::string& bytes, size_t size) {
  Hasher hasher;
  hasher.Update(bytes.data(), size);
  return hasher.Finish().ToBinary();
}

}  // namespace

std::string Seal(uint32_t version, const std::string& body) {
  std::string bytes;
  bytes.reserve(kHeaderSize + body.size() + Digest::kSize);
  bytes += kMagic;
  AppendLittleEndian(version, 4, &bytes);
  AppendLittleEndian(body.size(), 8, &bytes);
  bytes += body;
  bytes += DigestOf(bytes, bytes.size());
  return bytes;
}

absl::StatusOr<std::string> Unseal(uint32_t version, std::string bytes) {
  if (bytes.size() < kHeaderSize + Digest::kSize) return absl::DataLossError("cut short");
  if (bytes.compare(0, kMagicSize, kMagic) != 0) {
    return absl::UnimplementedError("not an entry of this program");
  }
  const uint64_t found = LittleEndianAt(bytes, kMagicSize, 4);
  if (found != version) {
    return absl::UnimplementedError(absl::StrCat("format version ", found, ", not ", version));
  }
  const size_t sealed = bytes.size() - Digest::kSize;
  if (LittleEndianAt(bytes, kMagicSize + 4, 8) != sealed - kHeaderSize) {
    return absl::DataLossError("of another size than it says");
  }
  if (bytes.compare(sealed, Digest::kSize, DigestOf(bytes, sealed)) != 0) {
    return absl::DataLossError("the checksum does not match");
  }
  bytes.resize(sealed);
  bytes.erase(0, kHeaderSize);
  return bytes;
}

}  // namespace stowage
