#include "client/rpc/small_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "solvers/model/field_error.h"

namespace stowage {

absl::StatusOr<std::string> ReadSmallFile(const std::string& field, const std::string& path) {
  constexpr size_t kLimit = size_t{1} << 20;
  std::ifstream in(path, std::ios::binary);
  std::string text(kLimit + 1, '\0');
  if (!in) return FieldError(field, path, std::string("must be readable: ") + std::strerror(errno));
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.empty()) return FieldError(field, path, "must not be empty");
  if (text.size() > kLimit) return FieldError(field, path, "must have at most 1 MiB");
  return text;
}

}  // namespace stowage
