#include "client/agent/agreed_terms.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
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

// The more of the first four and the less of the others, the better.
std::vector<int64_t> LinkOf(const Device& device) {
  return {device.to_host_bytes_per_second, device.to_device_bytes_per_second,
          device.host_memory.value(),      device.duplex == Duplex::kFull ? 1 : 0,
          device.to_host_latency.value(),  device.to_device_latency.value()};
}

// Of two links what both can do.
void KeepSlower(const std::vector<int64_t>& other, Device* device) {
  const std::vector<int64_t> own = LinkOf(*device);
  device->to_host_bytes_per_second = std::min(own[0], other[0]);
  device->to_device_bytes_per_second = std::min(own[1], other[1]);
  device->host_memory = Bytes(std::min(own[2], other[2]));
  if (other[3] == 0 && device->duplex == Duplex::kFull) device->duplex = Duplex::kHalf;
  device->to_host_latency = Nanos(std::max(own[4], other[4]));
  device->to_device_latency = Nanos(std::max(own[5], other[5]));
}

// Of what must be the same on all ranks. Links need not be: two of one kind may lie in different classes.
std::string KeyOf(Profile profile) {
  WriteLink(nullptr, kAllHostMemory, &profile.device);
  return MakePlanKey(profile, {}).digest.ToHex();
}

// "<what has no cost, hashed>;<budget>;<costs>;<link>".
std::string EncodeTerms(const AgreedTerms& terms) {
  return absl::StrCat(KeyOf(terms.profile), ";", terms.budget.value(), ";",
                      absl::StrJoin(CostsOf(terms.profile.problem), ","), ";",
                      absl::StrJoin(LinkOf(terms.profile.device), ","));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> GatherOrFail(PlanAgreement* agreement,
                                                      const absl::StatusOr<std::string>& mine) {
  absl::StatusOr<std::vector<std::string>> all = agreement->Gather(
      mine.ok() ? absl::StrCat(std::string(1, kWell), *mine)
                : absl::StrCat(std::string(1, kFailed), mine.status().ToString()));
  if (!all.ok()) return all.status();
  if (!mine.ok()) return mine.status();
  for (size_t rank = 0; rank < all->size(); ++rank) {
    std::string& said = (*all)[rank];
    if (said.empty() || said[0] != kWell) {
      return absl::InternalError(
          absl::StrCat("rank ", rank, " failed: ", said.empty() ? "" : said.substr(1)));
    }
    said.erase(0, 1);
  }
  return all;
}

absl::StatusOr<AgreedTerms> AgreeOnTerms(PlanAgreement* agreement,
                                         const absl::StatusOr<AgreedTerms>& mine) {
  const absl::StatusOr<std::vector<std::string>> all = GatherOrFail(
      agreement, mine.ok() ? absl::StatusOr<std::string>(EncodeTerms(*mine)) : mine.status());
  if (!all.ok()) return all.status();
  AgreedTerms agreed = *mine;
  const std::string key = KeyOf(mine->profile);
  std::vector<int64_t> greatest = CostsOf(mine->profile.problem);
  for (size_t rank = 0; rank < all->size(); ++rank) {
    const std::vector<std::string> parts = absl::StrSplit((*all)[rank], ';');
    if (parts.size() != 4) return absl::InternalError("a rank's terms are not in four parts");
    if (parts[0] != key) {
      return absl::FailedPreconditionError(
          absl::StrCat("rank ", rank, " trains another network, batch or environment than rank ",
                       agreement->rank()));
    }
    const absl::StatusOr<std::vector<int64_t>> budget = Integers(parts[1]);
    const absl::StatusOr<std::vector<int64_t>> costs = Integers(parts[2]);
    const absl::StatusOr<std::vector<int64_t>> link = Integers(parts[3]);
    for (const absl::Status& status : {budget.status(), costs.status(), link.status()}) {
      if (!status.ok()) return status;
    }
    if (costs->size() != greatest.size() || link->size() != LinkOf(Device()).size()) {
      return absl::InternalError("a rank has other costs");
    }
    KeepSlower(*link, &agreed.profile.device);
    agreed.budget = std::min(agreed.budget, Bytes((*budget)[0]));
    for (size_t i = 0; i < greatest.size(); ++i) {
      greatest[i] = std::max(greatest[i], (*costs)[i]);
    }
  }
  absl::StatusOr<Problem> problem = std::visit(
      [&greatest](const auto& own) { return WithCosts(own, greatest); }, mine->profile.problem);
  if (!problem.ok()) return problem.status();
  agreed.profile.problem = *std::move(problem);
  return agreed;
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
