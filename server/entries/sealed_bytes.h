// Bytes that tell on their own whether they are whole, ours, and of a version that is known.
//
//   "STWE"            4 bytes
//   format version    4 bytes, low ones first
//   size of the body  8 bytes, low ones first
//   body
//   SHA-256           32 bytes, of everything before
//
// SHA-256 guards against damage and against the mistakes of others, not against who can write to the
// store. It costs 0.7 ns a byte where the processor has instructions for it.
#ifndef STOWAGE_SERVER_ENTRIES_SEALED_BYTES_H_
#define STOWAGE_SERVER_ENTRIES_SEALED_BYTES_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace stowage {

std::string Seal(uint32_t version, const std::string& body);

// The body. DATA_LOSS: cut or changed. UNIMPLEMENTED: not sealed by Seal, or of another version.
// O(bytes).
absl::StatusOr<std::string> Unseal(uint32_t version, std::string bytes);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_SEALED_BYTES_H_
