// Digests as programs write them into text.
#ifndef STOWAGE_SOLVERS_MODEL_DIGEST_TEXT_H_
#define STOWAGE_SOLVERS_MODEL_DIGEST_TEXT_H_

#include <optional>
#include <string>

#include "solvers/model/digest.h"

namespace stowage {

// Only what Digest::ToHex writes: 64 digits, small letters.
std::optional<Digest> DigestFromHex(const std::string& hex);

}  // namespace stowage

#endif  // STOWAGE_SOLVERS_MODEL_DIGEST_TEXT_H_
