#include "server/decisions/decision.h"

#include <algorithm>
#include <optional>

#include "server/entries/entry_codec.h"
#include "server/entries/field_code.h"
#include "server/entries/sealed_bytes.h"

namespace stowage {
namespace {

constexpr int64_t kGenerationLimit = int64_t{1} << 53;  // plan_entry.h: exact as a double

bool SameStanding(const StoredPlan& a, const StoredPlan& b) {
  return a.state == b.state && a.pinned == b.pinned && a.plan->revision == b.plan->revision;
}

// Whether the revisions for the budget that are in both stand alike; those of one alone were not
// decided about.
bool StandAlike(const PlanEntry& before, const PlanEntry& after, Bytes budget) {
  return std::all_of(after.plans.begin(), after.plans.end(), [&](const StoredPlan& now) {
    if (now.plan->budget != budget) return true;
    return std::all_of(before.plans.begin(), before.plans.end(), [&](const StoredPlan& then) {
      const bool is_same = then.plan->budget == budget && then.plan->revision == now.plan->revision;
      return !is_same || SameStanding(then, now);
    });
  });
}

std::shared_ptr<const PlanEntry> KeptFor(const PlanEntry& entry, Bytes budget) {
  auto kept = std::make_shared<PlanEntry>(entry);
  const auto is_other = [budget](const StoredPlan& stored) {
    return stored.plan->budget != budget;
  };
  kept->plans.erase(std::remove_if(kept->plans.begin(), kept->plans.end(), is_other),
                    kept->plans.end());
  // One that says that the reference was measured.
  if (kept->samples.size() > 1) kept->samples.erase(kept->samples.begin(), kept->samples.end() - 1);
  kept->reports.clear();
  kept->frontier = nullptr;
  kept->profile_wanted = false;
  kept->frozen = false;
  return kept;
}

template <class Code, class D>
void CodeDecision(Code* code, D* decision) {
  code->Choice(&decision->kind, DecisionKind::kBudget);
  code->Field(&decision->budget);
  code->Field(&decision->stamp);
  code->Field(&decision->generation);
}

bool IsPossible(const Decision& decision) {
  const bool of_budget = decision.kind == DecisionKind::kBudget;
  return decision.stamp > 0 && decision.stamp <= kLatestStamp && decision.generation >= 0 &&
         decision.generation < kGenerationLimit && (of_budget || decision.budget == Bytes(0)) &&
         (decision.kind != DecisionKind::kDeletion || !decision.kept);
}

}  // namespace

int64_t KeyDecisions::deleted_up_to() const {
  const auto deletion = all.find({DecisionKind::kDeletion, 0});
  return deletion == all.end() ? 0 : deletion->second.generation;
}

int64_t KeyDecisions::latest_stamp() const {
  int64_t latest = 0;
  for (const auto& [id, decision] : all) latest = std::max(latest, decision.stamp);
  return latest;
}

bool KeyDecisions::IsNews(const Decision& decision) const {
  if (decision.kind != DecisionKind::kDeletion && decision.generation <= deleted_up_to()) {
    return false;
  }
  const auto known = all.find(IdOf(decision));
  return known == all.end() || decision.stamp > known->second.stamp;
}

void KeyDecisions::Add(const Decision& decision) {
  if (!IsNews(decision)) return;
  all[IdOf(decision)] = decision;
  if (decision.kind != DecisionKind::kDeletion) return;
  for (auto it = all.begin(); it != all.end();) {
    const bool is_over =
        it->first.first != DecisionKind::kDeletion && it->second.generation <= decision.generation;
    it = is_over ? all.erase(it) : std::next(it);
  }
}

std::vector<Decision> DecisionsBetween(const PlanEntry& before, const PlanEntry& after) {
  std::vector<Decision> made;
  Decision decision;
  decision.generation = after.generation;
  for (const StoredPlan& stored : after.plans) {
    decision.budget = stored.plan->budget;
    const bool is_done = std::any_of(made.begin(), made.end(), [&](const Decision& other) {
      return other.budget == decision.budget;
    });
    if (is_done || StandAlike(before, after, decision.budget)) continue;
    decision.kept = KeptFor(after, decision.budget);
    made.push_back(decision);
  }
  if (before.frozen == after.frozen) return made;
  decision.kind = DecisionKind::kFreeze;
  decision.budget = Bytes(0);
  decision.kept = after.frozen ? std::make_shared<const PlanEntry>(after) : nullptr;
  made.push_back(decision);
  return made;
}

Decision DeletionOf(int64_t there, int64_t deleted_before) {
  Decision deletion;
  deletion.kind = DecisionKind::kDeletion;
  deletion.generation = LastGenerationByNow(std::max(there, deleted_before));
  return deletion;
}

std::string EncodeDecision(const PlanKey& key, const Decision& decision) {
  FieldWriter out;
  const std::string digest = key.digest.ToBinary();
  const int64_t encoding = key.encoding_version;
  const std::string kept = decision.kept ? EncodeEntry(*decision.kept) : std::string();
  out.Field(&encoding);
  out.Field(&digest);
  CodeDecision(&out, &decision);
  out.Field(&kept);
  return Seal(kDecisionVersion, out.bytes());
}

absl::StatusOr<Decision> DecodeDecision(const PlanKey& key, std::string bytes) {
  const absl::StatusOr<std::string> body = Unseal(kDecisionVersion, std::move(bytes));
  if (!body.ok()) return body.status();
  FieldReader in(*body);
  Decision decision;
  std::string digest, kept;
  int64_t encoding = 0;
  in.Field(&encoding);
  in.Field(&digest);
  CodeDecision(&in, &decision);
  in.Field(&kept);
  if (!in.done() || encoding != key.encoding_version || digest != key.digest.ToBinary()) {
    return absl::DataLossError("malformed, or a decision about another key");
  }
  if (!kept.empty()) {
    auto entry = DecodeEntry(key, std::move(kept));
    if (!entry.ok()) return entry.status();
    decision.kept = *std::move(entry);
  }
  if (!IsPossible(decision)) return absl::DataLossError("no decision that can be made");
  return decision;
}

}  // namespace stowage
