// Puts the plans of a catalogue into a store: so that jobs whose network is in it find a plan under their
// key without times measured and without a solve.
//
// The key is the one that the jobs compute: the structure is that of the described network, which is the one
// that client/torch finds; the environment and the tenant are those that the operator names. An entry says that
// nobody has measured its costs (PlanEntry::samples): who finds a plan is asked for a profile, and the first that
// comes is its reference.
#ifndef STOWAGE_SERVER_CATALOGUE_CATALOGUE_IMPORT_H_
#define STOWAGE_SERVER_CATALOGUE_CATALOGUE_IMPORT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/catalogue/environment_file.h"
#include "server/store/plan_store.h"
#include "solvers/zoo/catalogue.h"

namespace stowage {

struct CataloguedEntry {
  PlanKey key;
  PlanEntry entry;
};

// One frontier in one environment. Every plan was accepted by the evaluator, under the costs that are modelled for
// the frontier's kind of device. Errors: those of ProblemFor, ValidatedFrontier and MakePlanningProblem.
// O(points x instructions).
absl::StatusOr<CataloguedEntry> EntryOf(const NetworkCatalogue& catalogue,
                                        const CatalogueFrontier& frontier,
                                        const CatalogueEnvironment& environment);

struct CatalogueImport {
  int imported = 0;
  int replaced = 0;  // of an older version of the solver, and measured by nobody
  int present = 0;   // something is kept under the key already, or was erased not long ago
  int failed = 0;    // refused by the evaluator, or by the store
  std::string why;   // of the first failure
};

// All that the catalogue has for the kinds of the environments (FrontiersFor), in each of them: where the store has nothing, or
// what an older catalogue has put there and nobody has measured, pinned or frozen since. Waits for the store.
CatalogueImport ImportCatalogue(const std::vector<NetworkCatalogue>& networks,
                                const std::vector<CatalogueEnvironment>& environments,
                                PlanStore* store);

}  // namespace stowage

#endif  // STOWAGE_SERVER_CATALOGUE_CATALOGUE_IMPORT_H_
