// proto3 refuses strings that are not UTF-8 when it parses, so nothing else may be put into one.
#ifndef STOWAGE_PROTO_CODEC_UTF8_H_
#define STOWAGE_PROTO_CODEC_UTF8_H_

#include <string>

namespace stowage {

// The text with every byte that is not part of well-formed UTF-8 replaced by '?'.
std::string ToValidUtf8(const std::string& text);

}  // namespace stowage

#endif  // STOWAGE_PROTO_CODEC_UTF8_H_
