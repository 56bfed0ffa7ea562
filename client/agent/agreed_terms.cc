#include "client/agent/agreed_terms.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/agent/device_link.h"
#include "solvers/schedule/instance.h"
#include "solvers/schedule/plan.h"
#include "solvers/schedule/schedule.h"

namespace stowage {
namespace {

constexpr char kWell = '+';
constexpr char kFailed = '-';
constexpr size_t kCosts = 7;  // of a stage or vertex
// In place of a time: its recomputes do not stop early. The greatest of all ranks' is then this.
constexpr int64_t kNeverStops = std::numeric_limits<int64_t>::max();

template <class Step>
std::vector<int64_t> CostsOf(const Step& step) {
  return {step.forward_time.value(),
          step.backward_time.value(),
          step.forward_saving_overhead.value(),
          step.forward_overhead.value(),
          step.backward_overhead.value(),
          step.stops() ? step.stopped_time().value() : kNeverStops,
          step.stopped_overhead().value()};
}

template <class Step>
void SetCosts(const std::vector<int64_t>& costs, size_t at, Step* step) {
  step->forward_time = Nanos(costs[at]);
  step->backward_time = Nanos(costs[at + 1]);
  step->forward_saving_overhead = Bytes(costs[at + 2]);
  step->forward_overhead = Bytes(costs[at + 3]);
  step->backward_overhead = Bytes(costs[at + 4]);
  step->recompute_saving_time.reset();
  step->recompute_saving_overhead.reset();
  if (costs[at + 5] == kNeverStops) return;
  step->recompute_saving_time = Nanos(costs[at + 5]);
  step->recompute_saving_overhead = Bytes(costs[at + 6]);
}

void Append(const std::vector<int64_t>& more, std::vector<int64_t>* all) {
  all->insert(all->end(), more.begin(), more.end());
}

std::vector<int64_t> CostsOf(const Problem& problem) {
  std::vector<int64_t> costs;
  if (const Chain* chain = std::get_if<Chain>(&problem)) {
    for (int l = 1; l <= chain->length() + 1; ++l) Append(CostsOf(chain->stage(l)), &costs);
    return costs;
  }
  const Graph& graph = std::get<Graph>(problem);
  for (int v = 0; v < graph.size(); ++v) Append(CostsOf(graph.vertex(v)), &costs);
  return costs;
}

absl::StatusOr<Problem> WithCosts(const Chain& chain, const std::vector<int64_t>& costs) {
  ChainSpec spec = chain.spec();
  for (size_t i = 0; i < spec.stages.size(); ++i) SetCosts(costs, kCosts * i, &spec.stages[i]);
  SetCosts(costs, kCosts * spec.stages.size(), &spec.loss);
  absl::StatusOr<Chain> made = Chain::Create(std::move(spec));
  if (!made.ok()) return made.status();
  return Problem(*std::move(made));
}

absl::StatusOr<Problem> WithCosts(const Graph& graph, const std::vector<int64_t>& costs) {
  GraphSpec spec = graph.spec();
  for (size_t v = 0; v < spec.vertices.size(); ++v) {
    SetCosts(costs, kCosts * v, &spec.vertices[v]);
  }
  absl::StatusOr<Graph> made = Graph::Create(std::move(spec));
  if (!made.ok()) return made.status();
  return Problem(*std::move(made));
}

absl::StatusOr<std::vector<int64_t>> Integers(const std::string& text) {
  std::vector<int64_t> values;
  for (const auto part : absl::StrSplit(text, ',')) {
    int64_t value = 0;
    if (!absl::SimpleAtoi(part, &value))
      return absl::InternalError("a rank says what is no number");
    values.push_back(value);
  }
  return values;
}

// Of LinkOf, from the front; of the others, the less.
constexpr size_t kMoreIsBetter = 4;

std::vector<int64_t> LinkOf(const Device& device) {
  return {device.to_host_bytes_per_second, device.to_device_bytes_per_second,
          device.host_memory.value(),      device.duplex == Duplex::kFull ? 1 : 0,
          device.to_host_latency.value(),  device.to_device_latency.value()};
}

// Of a rank's own link the slowest that any has, as LinkOf has it.
void SetLink(const std::vector<int64_t>& slowest, Device* device) {
  device->to_host_bytes_per_second = slowest[0];
  device->to_device_bytes_per_second = slowest[1];
  device->host_memory = Bytes(slowest[2]);
  if (slowest[3] == 0 && device->duplex == Duplex::kFull) device->duplex = Duplex::kHalf;
  device->to_host_latency = Nanos(slowest[4]);
  device->to_device_latency = Nanos(slowest[5]);
}

// Of what must be the same on all ranks. Links need not be: two of one kind may lie in different classes.
Digest KeyOf(const OwnTerms& terms) {
  Profile profile = terms.profile;
  WriteLink(nullptr, kAllHostMemory, &profile.device);
  return MakePlanKey(profile, {}).digest;
}

// What ranks say of a digest, of equal length whatever it is of: whether one failed, and a digest of which the greatest of all
// ranks tell whether all have the same: each part of it, and its complement.
std::vector<int64_t> HeadOf(const absl::StatusOr<Digest>& digest) {
  std::vector<int64_t> head = {digest.ok() ? 0 : 1};
  const std::string bytes = (digest.ok() ? *digest : Digest()).ToBinary();
  for (size_t at = 0; at < bytes.size(); at += sizeof(int64_t)) {
    int64_t part = 0;
    std::memcpy(&part, bytes.data() + at, sizeof(part));
    head.push_back(part);
    head.push_back(~part);
  }
  return head;
}

// A text behind a mark that says whether it is an error's.
std::string Marked(const absl::StatusOr<std::string>& mine) {
  return mine.ok() ? absl::StrCat(std::string(1, kWell), *mine)
                   : absl::StrCat(std::string(1, kFailed), mine.status().ToString());
}

absl::Status TakeMark(int rank, std::string* said) {
  if (said->empty() || said->front() != kWell) {
    return absl::InternalError(
        absl::StrCat("rank ", rank, " failed: ", said->empty() ? "" : said->substr(1)));
  }
  said->erase(0, 1);
  return absl::OkStatus();
}

// What came of the heads, those of `mine` and the greatest of all; `differs` says of a rank that its digest is another one.
absl::Status CheckHeads(PlanAgreement* agreement, const absl::StatusOr<Digest>& mine,
                        const std::vector<int64_t>& greatest,
                        const std::function<absl::Status(int rank)>& differs) {
  const std::vector<int64_t> head = HeadOf(mine);
  if (mine.ok() && std::equal(head.begin(), head.end(), greatest.begin())) return absl::OkStatus();
  // Of all ranks alike; now each names itself.
  const absl::StatusOr<std::vector<std::string>> all = GatherOrFail(
      agreement, mine.ok() ? absl::StatusOr<std::string>(mine->ToHex()) : mine.status());
  if (!all.ok()) return all.status();
  for (size_t rank = 0; rank < all->size(); ++rank) {
    if ((*all)[rank] != mine->ToHex()) return differs(static_cast<int>(rank));
  }
  return absl::InternalError("the ranks say one thing, then another");
}

// The greatest costs of all, and of the link what is the worse the greater it is.
absl::StatusOr<Profile> AgreeOnCosts(PlanAgreement* agreement, const Profile& mine) {
  std::vector<int64_t> numbers = CostsOf(mine.problem);
  const size_t costs = numbers.size();
  std::vector<int64_t> link = LinkOf(mine.device);
  for (size_t i = 0; i < link.size(); ++i) {
    numbers.push_back(i < kMoreIsBetter ? -link[i] : link[i]);
  }
  absl::StatusOr<std::vector<int64_t>> greatest = agreement->Greatest(numbers);
  if (!greatest.ok()) return greatest.status();
  for (size_t i = 0; i < link.size(); ++i) {
    const int64_t value = (*greatest)[costs + i];
    link[i] = i < kMoreIsBetter ? -value : value;
  }
  Profile agreed = mine;
  SetLink(link, &agreed.device);
  greatest->resize(costs);
  absl::StatusOr<Problem> problem =
      std::visit([&greatest](const auto& own) { return WithCosts(own, *greatest); }, mine.problem);
  if (!problem.ok()) return problem.status();
  agreed.problem = *std::move(problem);
  return agreed;
}

// The least of all ranks, where each has one; else an error of all, as of GatherOrFail.
absl::StatusOr<Bytes> AgreeOnBudget(PlanAgreement* agreement, const absl::StatusOr<Bytes>& mine) {
  constexpr int64_t kNone = std::numeric_limits<int64_t>::min();
  const absl::StatusOr<std::vector<int64_t>> greatest =
      agreement->Greatest({mine.ok() ? 0 : 1, mine.ok() ? -mine->value() : kNone});
  if (!greatest.ok()) return greatest.status();
  if (greatest->front() == 0) return Bytes(-greatest->back());
  // Of all ranks alike; now each that has failed says why.
  const absl::Status why =
      GatherOrFail(agreement, mine.ok() ? absl::StatusOr<std::string>("") : mine.status()).status();
  return why.ok() ? absl::InternalError("the ranks say one thing, then another") : why;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> GatherOrFail(PlanAgreement* agreement,
                                                      const absl::StatusOr<std::string>& mine) {
  absl::StatusOr<std::vector<std::string>> all = agreement->Gather(Marked(mine));
  if (!all.ok()) return all.status();
  if (!mine.ok()) return mine.status();
  for (size_t rank = 0; rank < all->size(); ++rank) {
    const absl::Status failed = TakeMark(static_cast<int>(rank), &(*all)[rank]);
    if (!failed.ok()) return failed;
  }
  return all;
}

absl::StatusOr<std::string> BroadcastOrFail(PlanAgreement* agreement,
                                            const absl::StatusOr<std::string>& mine) {
  absl::StatusOr<std::string> said = agreement->Broadcast(Marked(mine));
  if (!said.ok()) return said.status();
  if (agreement->rank() == 0 && !mine.ok()) return mine.status();
  const absl::Status failed = TakeMark(0, &*said);
  if (!failed.ok()) return failed;
  return said;
}

absl::StatusOr<std::string> BroadcastFrom(PlanAgreement* agreement, int from,
                                          const std::string& mine) {
  const bool says = agreement->rank() == from;
  const auto length = agreement->Greatest({says ? static_cast<int64_t>(mine.size()) : 0});
  if (!length.ok()) return length.status();
  const auto size = static_cast<size_t>(length->front());
  // Others say the least there is, so that the greatest are its words.
  std::vector<int64_t> words((size + sizeof(int64_t) - 1) / sizeof(int64_t),
                             says ? 0 : std::numeric_limits<int64_t>::min());
  if (says && size > 0) std::memcpy(words.data(), mine.data(), size);
  const auto said = agreement->Greatest(words);
  if (!said.ok()) return said.status();
  std::string text(size, '\0');
  if (size > 0) std::memcpy(text.data(), said->data(), size);
  return text;
}

absl::StatusOr<Problem> WithTimesOf(const Problem& own, const Problem& agreed) {
  std::vector<int64_t> costs = CostsOf(agreed);
  const std::vector<int64_t> mine = CostsOf(own);
  if (costs.size() != mine.size()) return absl::InternalError("costs of another structure");
  for (size_t at = 0; at < costs.size(); at += kCosts) {
    for (const size_t time : {at, at + 1}) costs[time] = mine[time];
    if (costs[at + 5] != kNeverStops) costs[at + 5] = mine[at + 5];
  }
  return std::visit([&costs](const auto& of) { return WithCosts(of, costs); }, agreed);
}

absl::Status AgreeOnDigest(PlanAgreement* agreement, const absl::StatusOr<Digest>& mine,
                           const std::function<absl::Status(int rank)>& differs) {
  const absl::StatusOr<std::vector<int64_t>> greatest = agreement->Greatest(HeadOf(mine));
  if (!greatest.ok()) return greatest.status();
  return CheckHeads(agreement, mine, *greatest, differs);
}

// How a rank begins: where one is off, it does not matter what others lack.
constexpr int64_t kLacks = 1;
constexpr int64_t kOff = 2;

// As many numbers as ranks of versions up to 0.1.7 begin with, which then see that theirs are others, and gather, too.
absl::StatusOr<Beginning> AgreeToBegin(PlanAgreement* agreement,
                                       const absl::StatusOr<Beginning>& mine,
                                       const std::string& version) {
  const absl::StatusOr<Digest> digest =
      mine.ok() ? absl::StatusOr<Digest>(Sha256(version)) : mine.status();
  std::vector<int64_t> head = HeadOf(digest);
  head.push_back(!mine.ok() ? 0 : mine->off ? kOff : mine->lacks ? kLacks : 0);
  const absl::StatusOr<std::vector<int64_t>> greatest = agreement->Greatest(head);
  if (!greatest.ok()) return greatest.status();
  const absl::Status same = CheckHeads(agreement, digest, *greatest, [agreement](int rank) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", rank, " has another version of Stowage than rank ", agreement->rank()));
  });
  if (!same.ok()) return same;
  return Beginning{greatest->back() == kLacks, greatest->back() == kOff};
}

absl::StatusOr<AgreedTerms> AgreeOnTerms(PlanAgreement* agreement,
                                         const absl::StatusOr<OwnTerms>& mine,
                                         const PlanOptions& options) {
  const absl::Status same =
      AgreeOnDigest(agreement, mine.ok() ? absl::StatusOr<Digest>(KeyOf(*mine)) : mine.status(),
                    [agreement](int rank) {
                      return absl::FailedPreconditionError(
                          absl::StrCat("rank ", rank, " trains another network or batch than rank ",
                                       agreement->rank(), ", or in another environment"));
                    });
  if (!same.ok()) return same;
  absl::StatusOr<Profile> profile = AgreeOnCosts(agreement, mine->profile);
  if (!profile.ok()) return profile.status();
  const absl::StatusOr<Bytes> budget =
      AgreeOnBudget(agreement, ResolveBudget(*profile, mine->budget, options));
  if (!budget.ok()) return budget.status();
  return AgreedTerms{*std::move(profile), *budget};
}

// "<status>,<source>,<profiled>,<for larger>,<profile wanted>,<revision>,<least budget>,<request time>,
// <key version>;<key><schedule>": the last two are bytes.
std::string EncodeAnswer(const ClientPlan& answer) {
  const PlanReply& reply = answer.reply;
  return absl::StrCat(static_cast<int>(reply.plan.status), ",", static_cast<int>(reply.source), ",",
                      answer.profiled ? 1 : 0, ",", answer.for_larger ? 1 : 0, ",",
                      reply.profile_wanted ? 1 : 0, ",", reply.plan.revision, ",",
                      reply.plan.bounds.least_budget.value(), ",", answer.request_time.value(), ",",
                      reply.key.encoding_version, ";", reply.key.digest.ToBinary(),
                      EncodeSchedule(reply.plan.schedule));
}

absl::StatusOr<ClientPlan> DecodeAnswer(const std::string& text, const AgreedTerms& terms) {
  constexpr int64_t kMostInstructions = int64_t{1} << 26;
  const size_t head = text.find(';');
  if (head == std::string::npos || text.size() < head + 1 + Digest::kSize) {
    return absl::InternalError("the plan of rank 0 is cut short");
  }
  const absl::StatusOr<std::vector<int64_t>> numbers = Integers(text.substr(0, head));
  if (!numbers.ok()) return numbers.status();
  if (numbers->size() != 9) return absl::InternalError("the plan of rank 0 has another form");
  const std::vector<int64_t>& n = *numbers;
  ClientPlan answer;
  PlanReply& reply = answer.reply;
  reply.plan.status = static_cast<PlanStatus>(n[0]);
  reply.source = static_cast<PlanSource>(n[1]);
  answer.profiled = n[2] != 0;
  answer.for_larger = n[3] != 0;
  reply.profile_wanted = n[4] != 0;
  reply.plan.revision = n[5];
  reply.plan.bounds.least_budget = Bytes(n[6]);
  answer.request_time = Nanos(n[7]);
  reply.key.encoding_version = static_cast<int32_t>(n[8]);
  std::array<uint8_t, Digest::kSize> key;
  std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(head) + 1, key.size(), key.begin());
  reply.key.digest = Digest(key);
  reply.plan.budget = terms.budget;
  if (reply.plan.status != PlanStatus::kFound) return answer;
  absl::StatusOr<Schedule> schedule =
      DecodeSchedule(text.substr(head + 1 + Digest::kSize), kMostInstructions);
  if (!schedule.ok()) return absl::InternalError(schedule.status().message());
  reply.plan.schedule = *std::move(schedule);
  const absl::Status status =
      ValidatePlan(InstanceOf(terms.profile, /*recompute_only=*/false), &reply.plan);
  if (!status.ok()) return absl::InternalError(status.message());
  return answer;
}

}  // namespace stowage
