#include "server/entries/entry_keys.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "solvers/model/digest.h"

namespace stowage {
namespace {

constexpr size_t kKeyDigits = 64;

Digest MacOf(const std::string& key, const std::string& name, const std::string& bytes) {
  return KeyedSha256(key, absl::StrCat(name, absl::string_view("\0", 1), bytes));
}

}  // namespace

absl::StatusOr<EntryKeys::Keys> EntryKeys::Parse(const std::string& path, const std::string& text) {
  Keys keys;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const bool valid =
        line.size() == kKeyDigits && std::all_of(line.begin(), line.end(), absl::ascii_isxdigit);
    if (!valid) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": must be 64 hexadecimal digits"));
    }
    keys.push_back(absl::HexStringToBytes(line));
  }
  if (keys.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": has no key"));
  return keys;
}

void EntryKeys::Set(Keys keys) {
  auto set = std::make_shared<const Keys>(std::move(keys));
  std::lock_guard<std::mutex> lock(mutex_);
  keys_ = std::move(set);
}

std::shared_ptr<const EntryKeys::Keys> EntryKeys::keys() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return keys_;
}

std::string EntryKeys::Seal(const std::string& name, std::string bytes) const {
  bytes += MacOf(keys()->front(), name, bytes).ToBinary();
  return bytes;
}

absl::StatusOr<std::string> EntryKeys::Open(const std::string& name, std::string bytes) const {
  if (bytes.size() < Digest::kSize) return absl::DataLossError("cut short");
  std::array<uint8_t, Digest::kSize> end{};
  std::copy(bytes.end() - Digest::kSize, bytes.end(), end.begin());
  const Digest mac(end);
  bytes.resize(bytes.size() - Digest::kSize);
  for (const std::string& key : *keys()) {
    if (SameSecretly(MacOf(key, name, bytes), mac)) return bytes;
  }
  return absl::DataLossError("sealed under none of the keys");
}

std::string SealUnder(const EntryKeys* keys, const std::string& name, std::string bytes) {
  return keys == nullptr ? std::move(bytes) : keys->Seal(name, std::move(bytes));
}

absl::StatusOr<std::string> OpenUnder(const EntryKeys* keys, const std::string& name,
                                      std::string bytes) {
  if (keys == nullptr) return bytes;
  return keys->Open(name, std::move(bytes));
}

}  // namespace stowage
