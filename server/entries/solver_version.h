// Which of two versions of the solver is the newer one.
#ifndef STOWAGE_SERVER_ENTRIES_SOLVER_VERSION_H_
#define STOWAGE_SERVER_ENTRIES_SOLVER_VERSION_H_

#include <string>

namespace stowage {

// The numbers between the dots as numbers, one that is missing as 0 ("0.9" < "0.10" = "0.10.0"); then what follows
// them: nothing after anything ("1.0-rc1" < "1.0"), else by its bytes. What begins with no number is older than all that do.
// A strict order: of two servers at most one holds the other's plans for outdated. Pure, hence thread-safe.
bool IsNewerVersion(const std::string& a, const std::string& b);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_SOLVER_VERSION_H_
