// Arbitrary bytes as what was decided, as they are and as the body of a record whose seal matches:
// refused, or a decision that encodes to the same bytes and is applied to nothing and to what it keeps.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/decisions/apply_decisions.h"
#include "server/decisions/decision.h"
#include "server/entries/field_code.h"
#include "server/entries/sealed_bytes.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

void Decode(const PlanKey& key, const std::string& bytes) {
  const auto decoded = DecodeDecision(key, bytes);
  if (!decoded.ok()) {
    Require(absl::IsDataLoss(decoded.status()) || absl::IsUnimplemented(decoded.status()),
            "bad bytes are corrupt or foreign", decoded.status().ToString());
    return;
  }
  Require(EncodeDecision(key, *decoded) == bytes, "a decision has one encoding");
  KeyDecisions known;
  known.Add(*decoded);
  ApplyDecisions(known, nullptr);
  if (decoded->kept) ApplyDecisions(known, decoded->kept);
}

PlanKey KeyIn(const std::string& body) {
  FieldReader in(body);
  int64_t encoding = 0;
  std::string digest;
  in.Field(&encoding);
  in.Field(&digest);
  PlanKey key;
  key.encoding_version = static_cast<int32_t>(encoding);
  if (digest.size() != Digest::kSize) return key;
  std::array<uint8_t, Digest::kSize> binary{};
  for (size_t i = 0; i < binary.size(); ++i) binary[i] = static_cast<uint8_t>(digest[i]);
  key.digest = Digest(binary);
  return key;
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  Decode(KeyIn(bytes), bytes);
  Decode(KeyIn(bytes), Seal(kDecisionVersion, bytes));
  return 0;
}
