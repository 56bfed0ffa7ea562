#include "server/catalogue/catalogue_import.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/entries/frontier_plans.h"
#include "server/entries/plan_record.h"
#include "server/entries/planning_problem.h"
#include "server/entries/solver_version.h"

namespace stowage {
namespace {

enum class Outcome { kImported, kReplaced, kPresent, kFailed };

// What an older catalogue has put there, as it was.
bool IsOutdated(const PlanEntry& entry, const PlanEntry& next) {
  if (!entry.samples.empty() || entry.frozen || next.plans.empty()) return false;
  const std::string& version = next.plans.front().plan->provenance.solver_version;
  return std::all_of(entry.plans.begin(), entry.plans.end(), [&](const StoredPlan& stored) {
    return !stored.pinned && stored.state == RevisionState::kServing &&
           IsNewerVersion(version, stored.plan->provenance.solver_version);
  });
}

// What became of a change that another one may have come before.
absl::StatusOr<Outcome> After(const absl::Status& change, Outcome done) {
  if (absl::IsAborted(change)) return Outcome::kPresent;
  if (!change.ok()) return change;
  return done;
}

absl::StatusOr<Outcome> Put(CataloguedEntry made, PlanStore* store) {
  const PlanAnswer kept = store->Look(made.key, Access::kInspect);
  if (!kept.entry) {
    if (kept.absence == Absence::kErased) return Outcome::kPresent;
    BecomeGeneration(FirstGeneration(store->DeletedUpTo(made.key)), &made.entry);
    auto entry = std::make_shared<const PlanEntry>(std::move(made.entry));
    return After(store->Put(made.key, std::move(entry)), Outcome::kImported);
  }
  if (!IsOutdated(*kept.entry, made.entry)) return Outcome::kPresent;
  const int64_t read = kept.entry->generation;
  BecomeGeneration(read + 1, &made.entry);
  auto entry = std::make_shared<const PlanEntry>(std::move(made.entry));
  return After(store->Replace(made.key, read, std::move(entry), Durability::kBestEffort),
               Outcome::kReplaced);
}

void Count(const absl::StatusOr<Outcome>& outcome, CatalogueImport* import) {
  switch (outcome.value_or(Outcome::kFailed)) {
    case Outcome::kImported:
      ++import->imported;
      break;
    case Outcome::kReplaced:
      ++import->replaced;
      break;
    case Outcome::kPresent:
      ++import->present;
      break;
    case Outcome::kFailed:
      if (import->failed++ == 0) import->why = std::string(outcome.status().message());
      break;
  }
}

}  // namespace

absl::StatusOr<CataloguedEntry> EntryOf(const NetworkCatalogue& catalogue,
                                        const CatalogueFrontier& frontier,
                                        const CatalogueEnvironment& environment) {
  absl::StatusOr<Problem> described = ProblemFor(catalogue, frontier);
  if (!described.ok()) return described.status();
  absl::StatusOr<Frontier> validated = ValidatedFrontier(catalogue, frontier, *described);
  if (!validated.ok()) return validated.status();
  KeyOptions options;
  options.tenant = environment.tenant;
  const Profile profile{catalogue.network, environment.device, *std::move(described),
                        CostSource::kModelled};
  const auto problem = MakePlanningProblem(profile, options, Sha256);
  if (!problem.ok()) return problem.status();
  auto plans =
      PlansOfFrontier(*(*problem)->costs, *validated, catalogue.solver_version,
                      absl::StrCat("from the catalogue, for costs modelled on ", frontier.device));
  if (!plans.ok()) return plans.status();
  CataloguedEntry made{(*problem)->key, NewEntry(**problem, /*job=*/0)};
  made.entry.samples.clear();
  made.entry.plans = *std::move(plans);
  const Bytes least = frontier.info.least_budget;
  if (!validated->points().empty() && validated->points().front().peak == least) {
    made.entry.least_budget = least;
  }
  made.entry.frontier = std::make_shared<const Frontier>(*std::move(validated));
  return made;
}

CatalogueImport ImportCatalogue(const std::vector<NetworkCatalogue>& networks,
                                const std::vector<CatalogueEnvironment>& environments,
                                PlanStore* store) {
  CatalogueImport import;
  for (const CatalogueEnvironment& environment : environments) {
    for (const NetworkCatalogue& network : networks) {
      const auto frontiers = FrontiersFor(network, environment.kind);
      if (!frontiers.ok()) {
        Count(frontiers.status(), &import);
        continue;
      }
      for (const CatalogueFrontier& frontier : *frontiers) {
        absl::StatusOr<CataloguedEntry> made = EntryOf(network, frontier, environment);
        Count(made.ok() ? Put(*std::move(made), store) : made.status(), &import);
      }
    }
  }
  return import;
}

}  // namespace stowage
