// Arbitrary bytes as a stored entry, as they are and as the body of one whose seal matches: refused,
// or an entry that encodes to the same bytes and of which the evaluator accepts every plan.
#include <cstddef>
#include <cstdint>
#include <string>

#include "server/entries/entry_codec.h"
#include "server/entries/field_code.h"
#include "server/entries/sealed_bytes.h"
#include "solvers/model/digest.h"
#include "tests/fuzz/require.h"

namespace stowage {
namespace {

using testing::Require;

void Decode(const PlanKey& key, const std::string& bytes) {
  const auto decoded = DecodeEntry(key, bytes);
  if (!decoded.ok()) {
    Require(absl::IsDataLoss(decoded.status()) || absl::IsUnimplemented(decoded.status()),
            "bad bytes are corrupt or foreign", decoded.status().ToString());
    return;
  }
  const PlanEntry& entry = **decoded;
  Require(Sha256(entry.canonical) == key.digest, "an entry is of its key");
  Require(EncodeEntry(entry) == bytes, "an entry has one encoding");
  for (const StoredPlan& stored : entry.plans) {
    Plan plan = *stored.plan;
    Require(ValidatePlan(*entry.reference, &plan).ok(), "the evaluator accepts every plan");
  }
}

}  // namespace
}  // namespace stowage

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  std::string canonical;
  FieldReader(bytes).Field(&canonical);
  const PlanKey key{kEncodingVersion, Sha256(canonical)};
  Decode(key, bytes);
  Decode(key, Seal(kEntryVersion, bytes));
  return 0;
}
