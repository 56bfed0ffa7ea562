// Field names of errors, from where a check sees them to where the contract has them.
#ifndef STOWAGE_PROTO_CODEC_FIELD_PATH_H_
#define STOWAGE_PROTO_CODEC_FIELD_PATH_H_

#include <string>

#include "absl/status/status.h"

namespace stowage {

// The same field error with `prefix` before its field: "chain.input_bytes" becomes
// "profile.chain.input_bytes". Any other status comes back as it is.
absl::Status UnderField(const std::string& prefix, const absl::Status& status);

}  // namespace stowage

#endif  // STOWAGE_PROTO_CODEC_FIELD_PATH_H_
