// Arbitrary text as the file of a profile: refused, or a message that is written as text that reads
// as the same message.
#include <cstddef>
#include <cstdint>
#include <string>

#include "proto/codec/codec.h"
#include "solvers/model/field_error.h"
#include "tests/fuzz/require.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace stowage;
  using testing::Require;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<v1::Profile> message = ProfileFromJson(text);
  if (!message.ok()) {
    Require(absl::IsInvalidArgument(message.status()), "bad text is a bad argument", text);
    return 0;
  }
  const absl::StatusOr<v1::Profile> again = ProfileFromJson(ToJson(*message));
  Require(again.ok(), "what is written is read", again.status().ToString());
  Require(again->SerializeAsString() == message->SerializeAsString(), "nothing is lost", text);
  const absl::StatusOr<Profile> profile = FromProto(*message);
  Require(profile.ok() || GetFieldViolation(profile.status()), "the error names a field", text);
  return 0;
}
