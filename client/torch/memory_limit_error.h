// Why a TrackingAllocator had no memory, in figures.
#ifndef STOWAGE_CLIENT_TORCH_MEMORY_LIMIT_ERROR_H_
#define STOWAGE_CLIENT_TORCH_MEMORY_LIMIT_ERROR_H_

#include <c10/util/Exception.h>

#include <string>
#include <utility>

#include "solvers/model/units.h"

namespace stowage {

// As things were when it was thrown.
class MemoryLimitError : public c10::OutOfMemoryError {
 public:
  MemoryLimitError(c10::SourceLocation where, std::string words, Bytes asked_for, Bytes live,
                   Bytes held, Bytes allowed)
      : c10::OutOfMemoryError(where, std::move(words)),
        asked(asked_for),
        allocated(live),
        reserved(held),
        limit(allowed) {}

  const Bytes asked;
  const Bytes allocated;  // to all that is live
  const Bytes reserved;
  const Bytes limit;  // of reserved bytes
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_MEMORY_LIMIT_ERROR_H_
