#include "server/entries/entry_codec.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "server/entries/field_code.h"
#include "server/entries/plan_code.h"
#include "server/entries/problem_code.h"
#include "server/entries/sealed_bytes.h"
#include "solvers/schedule/simulation.h"

namespace stowage {
namespace {

template <class Code, class R>
void CodeReport(Code* code, R* report) {
  code->Hash(&report->job);
  code->Field(&report->budget);
  code->Field(&report->revision);
  code->Field(&report->time_ratio);
  code->Field(&report->peak_ratio);
  code->Field(&report->steps);
  code->Hash(&report->identity);
}

template <class Code, class E>
void CodeLabels(Code* code, E* entry) {
  code->Field(&entry->tenant);
  code->Field(&entry->name);
  code->Field(&entry->frozen);
  code->Field(&entry->profile_wanted);
  code->Field(&entry->generation);
}

// Whoever makes costs of samples goes over them stage by stage.
bool AlikeInSize(const Problem& a, const Problem& b) {
  return a.index() == b.index() && SizeOf(a) == SizeOf(b);
}

void ReadReference(FieldReader* in, PlanEntry* entry) {
  entry->reference = ReadProblem(in);
  if (entry->reference == nullptr) return;
  const absl::StatusOr<Simulation>& store_all = entry->reference->store_all();
  if (!store_all.ok()) return in->Fail();
  entry->store_all = *store_all;
}

void ReadSample(const Instance& reference, FieldReader* in, CostSample* sample) {
  in->Hash(&sample->job);
  in->Hash(&sample->identity);
  sample->costs = ReadProblem(in);
  if (sample->costs && !AlikeInSize(sample->costs->problem(), reference.problem())) in->Fail();
}

void ReadFrontier(FieldReader* in, PlanEntry* entry) {
  std::string encoded;
  in->Field(&encoded);
  if (!in->ok() || encoded.empty()) return;
  absl::StatusOr<Frontier> frontier = Frontier::Decode(encoded);
  if (!frontier.ok()) return in->Fail();
  entry->frontier = std::make_shared<const Frontier>(*std::move(frontier));
}

void ReadFields(FieldReader* in, PlanEntry* entry) {
  ReadReference(in, entry);
  if (!in->ok()) return;
  const Instance& reference = *entry->reference;
  in->Optional(&entry->least_budget, [in](Bytes* bytes) { in->Field(bytes); });
  in->List(&entry->plans,
           [&](StoredPlan* stored) { ReadPlan(reference, entry->store_all, in, stored); });
  in->List(&entry->samples, [&](CostSample* sample) { ReadSample(reference, in, sample); });
  in->List(&entry->reports, [in](ReportSample* report) { CodeReport(in, report); });
  ReadFrontier(in, entry);
  CodeLabels(in, entry);
}

// The time in a note, where it is a note on this generation.
std::optional<int64_t> UpdatedIn(absl::string_view note, int64_t generation) {
  constexpr int64_t kLatest = int64_t{1} << 33;  // more would be past the end of some clocks
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(note, absl::MaxSplits(':', 1));
  int64_t of = 0, seconds = 0;
  const bool whole = absl::SimpleAtoi(parts.first, &of) && absl::SimpleAtoi(parts.second, &seconds);
  if (!whole || of != generation || seconds < 0 || seconds > kLatest) return std::nullopt;
  return seconds;
}

}  // namespace

std::string EncodeEntry(const PlanEntry& entry) {
  FieldWriter out;
  out.Field(&entry.canonical);
  WriteProblem(*entry.reference, &out);
  out.Optional(&entry.least_budget, [&out](const Bytes* bytes) { out.Field(bytes); });
  out.List(&entry.plans, [&out](const StoredPlan* stored) { WritePlan(*stored, &out); });
  out.List(&entry.samples, [&out](const CostSample* sample) {
    out.Hash(&sample->job);
    out.Hash(&sample->identity);
    WriteProblem(*sample->costs, &out);
  });
  out.List(&entry.reports, [&out](const ReportSample* report) { CodeReport(&out, report); });
  const std::string frontier = entry.frontier ? entry.frontier->Encode() : std::string();
  out.Field(&frontier);
  CodeLabels(&out, &entry);
  return Seal(kEntryVersion, out.bytes());
}

EntryStamp StampOf(const PlanEntry& entry) {
  return {entry.generation, SealOf(EncodeEntry(entry))};
}

std::string UpdateNoteOf(const PlanEntry& entry) {
  return entry.updated_s ? absl::StrCat(entry.generation, ":", *entry.updated_s) : "";
}

absl::StatusOr<std::shared_ptr<const PlanEntry>> DecodeEntry(const PlanKey& key, std::string bytes,
                                                             const std::string& update_note) {
  const absl::StatusOr<std::string> body = Unseal(kEntryVersion, std::move(bytes));
  if (!body.ok()) return body.status();
  FieldReader in(*body);
  auto entry = std::make_shared<PlanEntry>();
  in.Field(&entry->canonical);
  if (!in.ok() || Sha256(entry->canonical) != key.digest) {
    return absl::DataLossError("an entry of another key");
  }
  ReadFields(&in, entry.get());
  if (!in.done()) return absl::DataLossError("malformed, or refused by the evaluator");
  entry->updated_s = UpdatedIn(update_note, entry->generation);
  return std::shared_ptr<const PlanEntry>(std::move(entry));
}

CacheFailure FailureOf(const absl::Status& status) {
  return absl::IsUnimplemented(status) ? CacheFailure::kForeign : CacheFailure::kCorrupt;
}

}  // namespace stowage
