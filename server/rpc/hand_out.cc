#include "server/rpc/hand_out.h"

#include "server/rpc/plan_source.h"

namespace stowage {
namespace {

// `revision` is 0 for a plan that is none of an entry's.
void Audit(const Plan& plan, int64_t revision, const PlanKey& key, Bytes budget,
           const Digest& digest, const char* source, const std::string& job,
           const RpcRecord& record) {
  record.Audit([&](AuditEvent* event) {
    event->action = "hand_out";
    event->job = job;
    event->key = key;
    event->budget = budget;
    event->revision = revision;
    event->source = source;
    if (plan.status == PlanStatus::kFound) {
      event->plan_digest = digest;
    } else {
      event->outcome = ToString(plan.status);
    }
  });
}

}  // namespace

void RecordHandOut(const CachedPlan& cached, const Digest& digest, const std::string& job,
                   RpcRecord* record) {
  record->SetKey(cached.key);
  Audit(*cached.plan, cached.plan->revision, cached.key, cached.budget, digest, "key", job,
        *record);
}

void RecordHandOut(const ComputeAnswer& answer, const Digest& digest, const std::string& job,
                   RpcRecord* record) {
  const char* const source = NameOf(answer.source);
  record->SetKey(answer.key);
  record->SetSource(source);
  Audit(answer.plan, answer.plan.revision, answer.key, answer.plan.budget, digest, source, job,
        *record);
}

void RecordBestSoFar(const Plan& plan, const PlanKey& key, const Digest& digest,
                     const std::string& job, const RpcRecord& record) {
  Audit(plan, 0, key, plan.budget, digest, "so_far", job, record);
}

}  // namespace stowage
