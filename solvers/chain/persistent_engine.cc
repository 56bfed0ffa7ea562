#include "solvers/chain/persistent_engine.h"

#include "absl/strings/str_cat.h"

namespace stowage {

absl::Status CheckTableSize(int64_t stages, int64_t slots, int64_t bytes,
                            const SolveOptions& options) {
  if (bytes <= options.table_limit.value()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("a table of ", slots, " slots for ", stages,
                                                   " stages takes ", bytes, " bytes; the limit is ",
                                                   options.table_limit.value()));
}

absl::Status NoMemoryForTable(int64_t bytes) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the machine has no memory left for a table of ", bytes, " bytes"));
}

}  // namespace stowage
