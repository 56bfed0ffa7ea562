#include "tests/bench/load/crash_load.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "stowage/v1/plan_admin_service.pb.h"
#include "tests/bench/load/answer_check.h"
#include "tests/bench/load/call_driver.h"
#include "tests/bench/load/crash_replica.h"
#include "tests/bench/load/fault_tally.h"
#include "tests/bench/load/kept_decision.h"
#include "tests/bench/load/memory_trail.h"
#include "tests/bench/load/service_process.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr char kPlanMethods[] = "/stowage.v1.PlanService/";
constexpr char kAdminMethods[] = "/stowage.v1.PlanAdminService/";
constexpr int kNetworks = 40;
constexpr int kStages = 30;
constexpr double kShare = 0.5;
constexpr int kPlanners = 3;
constexpr int kFirstDecided = 600000000;
constexpr size_t kRemembered = 200;  // decisions of each replica that are looked at again
constexpr milliseconds kPatience(10000);
// At the end, until all replicas say that all holds, once nothing breaks any more.
constexpr std::chrono::seconds kLastPatience(60);
// Until a server that has lost its disk has heard what it had acknowledged: it asks what servers share again after 5 s for each of
// two tiers before that (server/operating.md), and the Redis of decisions may be away meanwhile.
constexpr std::chrono::seconds kHearing(30);
constexpr milliseconds kBetweenLooks(250);  // at the memory, and at what does not hold yet
// Of the time, after which the last replica is not killed any more: what leaks shows in a long life.
constexpr double kMortal = 0.25;
constexpr double kLeastSecondsOfMemory = 60;

// What callers are told to expect of a service that is broken.
bool IsExpected(const grpc::Status& status) {
  static const std::set<int> kCodes = {grpc::OK,
                                       grpc::NOT_FOUND,
                                       grpc::UNAVAILABLE,
                                       grpc::DEADLINE_EXCEEDED,
                                       grpc::RESOURCE_EXHAUSTED,
                                       grpc::ABORTED};
  return kCodes.count(status.error_code()) > 0;
}

// Of all callers. Thread-safe.
class Tally {
 public:
  void Count(const std::string& kind, const grpc::Status& status) {
    std::lock_guard<std::mutex> lock(mutex_);
    ++counts_[absl::StrCat(kind, " code ", status.error_code())];
    if (!IsExpected(status)) {
      WrongLocked(absl::StrCat(kind, ": code ", status.error_code(), ": ", status.error_message()));
    }
  }
  void Wrong(const std::string& why) {
    std::lock_guard<std::mutex> lock(mutex_);
    WrongLocked(why);
  }
  void Print() const {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [what, count] : counts_) {
      std::printf("%-32s %lld\n", what.c_str(), static_cast<long long>(count));
    }
  }
  absl::Status wrong() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return wrong_;
  }

 private:
  void WrongLocked(const std::string& why) {
    if (wrong_.ok()) wrong_ = absl::InternalError(why);
  }

  mutable std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
  absl::Status wrong_;
};

// One call after the other to one replica, on connections that find it again.
class Caller {
 public:
  explicit Caller(const std::string& address) : driver_(address, 1) {}

  template <class Response>
  grpc::Status Ask(const std::string& method, const google::protobuf::Message& request,
                   Response* response) {
    grpc::Status status;
    driver_.Start(method, request.SerializeAsString(), kPatience, [&](const CallResult& result) {
      status = result.status;
      reply_ = result.reply;
      if (status.ok()) response->ParseFromString(result.reply);
    });
    driver_.Finish();
    return status;
  }
  const std::string& reply() const { return reply_; }

 private:
  CallDriver driver_;
  std::string reply_;
};

v1::GetPlanRequest GetRequest(const v1::PlanKey& key) {
  v1::GetPlanRequest get;
  *get.add_keys() = key;
  get.mutable_budget()->set_share_of_store_all(kShare);
  return get;
}

// What a replica says of a decision now.
struct Looked {
  bool said = false;  // else it cannot say now
  std::string wrong;  // empty: it holds
};

std::string MegabytesOf(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f MB", 1e-6 * static_cast<double>(bytes));
  return text;
}

class Crashes {
 public:
  explicit Crashes(const CrashOptions& options) : options_(options), draw_(options.seed) {
    const bool moves_clocks = CanMoveClocks();
    for (int i = 0; i < options.replicas; ++i) {
      replicas_.push_back(
          std::make_unique<CrashReplica>(options.stowaged, moves_clocks ? options.faketime : ""));
      const std::string& why_not = replicas_.back()->disk.why_not();
      if (!why_not.empty()) faults_.Cannot("disk", why_not);
    }
    memory_.resize(replicas_.size());
    decided_.resize(replicas_.size());
    for (const auto& [kind, why] : options.cannot) faults_.Cannot(kind, why);
    for (const std::string& kind : options.left_out) faults_.LeaveOut(kind);
  }

  absl::Status Run() {
    if (absl::Status possible = faults_.CheckPossible(options_.allow_skipped); !possible.ok()) {
      return possible;
    }
    for (size_t i = 0; i < replicas_.size(); ++i) {
      if (absl::Status started = Start(i); !started.ok()) return started;
    }
    asking_ = true;
    std::vector<std::thread> callers;
    for (int i = 0; i < kPlanners; ++i) callers.emplace_back([this, i] { Plan(i); });
    for (size_t i = 0; i < replicas_.size(); ++i) {
      callers.emplace_back([this, i] { Decide(i); });
    }
    callers.emplace_back([this] { WatchMemory(); });
    const absl::Status broken = Break();
    broke_until_ = Seconds();
    asking_ = false;
    for (std::thread& caller : callers) caller.join();
    if (!broken.ok()) return broken;
    std::this_thread::sleep_for(std::chrono::duration<double>(options_.calm_seconds));
    LookEverywhere();
    return Report();
  }

 private:
  bool CanMoveClocks() {
    if (options_.faketime.empty()) {
      faults_.Cannot("clock", "without --faketime");
    } else if (access(options_.faketime.c_str(), R_OK) != 0) {
      faults_.Cannot("clock", absl::StrCat("--faketime = ", options_.faketime, ": no such file"));
    } else {
      return true;
    }
    return false;
  }

  double Seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }

  absl::Status Start(size_t index) {
    const absl::Status started = replicas_[index]->Start();
    memory_[index].Started(Seconds());
    return started;
  }

  // One fault after the other, each mended before the next; the first round of all kinds to its end.
  absl::Status Break() {
    absl::Status status;
    for (bool first = true; status.ok() && (first || Seconds() < options_.seconds); first = false) {
      for (const std::string& kind : Round()) {
        std::this_thread::sleep_for(std::chrono::duration<double>(options_.pause_seconds));
        if (!first && Seconds() >= options_.seconds) break;
        status = Inject(kind);
        if (!status.ok()) break;
      }
    }
    if (options_.mend_shared && status.ok()) status = options_.mend_shared();
    for (const auto& replica : replicas_) replica->SetClock(0);
    return status;
  }

  std::vector<std::string> Round() {
    std::vector<std::string> round = {"kill"};  // twice as often as the others
    for (const FaultKind& kind : faults_.Kinds()) round.push_back(kind.name);
    std::shuffle(round.begin(), round.end(), draw_);
    return round;
  }

  void WatchMemory() {
    while (asking_) {
      {
        std::lock_guard<std::mutex> lock(processes_mutex_);
        for (size_t i = 0; i < replicas_.size(); ++i) {
          memory_[i].Saw(Seconds(), replicas_[i]->resident_bytes());
        }
      }
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }

  absl::Status Inject(const std::string& kind) {
    CrashReplica* const replica = replicas_[draw_() % replicas_.size()].get();
    if (kind == "kill") return KillAndStart();
    if (kind == "stop") Freeze(replica);
    if (kind == "disk") FillDisk(replica);
    if (kind == "clock") JumpClock(replica);
    if (kind == "redis") return BreakShared(kind, options_.break_shared);
    if (kind == "failover") return BreakShared(kind, options_.fail_over);
    if (kind == "decisions") return BreakDecisions();
    return absl::OkStatus();
  }

  // Of those that may be killed now.
  size_t DrawMortal() {
    const bool all = replicas_.size() == 1 || Seconds() < kMortal * options_.seconds;
    return draw_() % (all ? replicas_.size() : replicas_.size() - 1);
  }
  absl::Status KillAndStart() {
    const size_t index = DrawMortal();
    faults_.Came("kill");
    std::lock_guard<std::mutex> lock(processes_mutex_);
    replicas_[index]->Kill();
    return Start(index);
  }
  void Freeze(CrashReplica* replica) {
    faults_.Came("stop");
    replica->Stop();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    replica->Continue();
  }
  void FillDisk(CrashReplica* replica) {
    if (!replica->disk.why_not().empty()) return;  // `faults_` knows
    faults_.Came("disk");
    replica->disk.Fill();
    std::this_thread::sleep_for(std::chrono::seconds(2));
    replica->disk.Empty();
  }
  void JumpClock(CrashReplica* replica) {
    if (!replica->has_own_clock()) return;  // CanMoveClocks has said why
    faults_.Came("clock");
    replica->SetClock(static_cast<int>(draw_() % 1200) - 600);
  }
  absl::Status BreakShared(const std::string& kind, const std::function<absl::Status()>& fault) {
    if (!fault) return absl::OkStatus();  // `cannot` says why
    absl::Status status = fault();
    if (status.ok()) faults_.Came(kind);
    return status;
  }

  absl::Status BreakDecisions() {
    if (!options_.break_decisions) return absl::OkStatus();  // `cannot` says why
    constexpr int kTurns = 3;
    absl::Status status;
    if (decisions_turn_++ % kTurns == 0) {
      status = LoseDisk();
    } else {
      options_.break_decisions();
    }
    if (status.ok()) faults_.Came("decisions");
    return status;
  }
  // All files of a replica, and what servers share beside the Redis of decisions: nobody else has what it acknowledged.
  absl::Status LoseDisk() {
    const size_t index = DrawMortal();
    if (options_.empty_shared) {
      if (absl::Status emptied = options_.empty_shared(); !emptied.ok()) return emptied;
    }
    std::lock_guard<std::mutex> lock(processes_mutex_);
    replicas_[index]->Kill();
    const absl::Status lost = replicas_[index]->LoseDisk();
    return lost.ok() ? Start(index) : lost;
  }

  ServerDisk DiskOf(size_t index) const { return {index, replicas_[index]->disk_number()}; }

  std::vector<std::unique_ptr<Caller>> CallersToAll() const {
    std::vector<std::unique_ptr<Caller>> callers;
    for (const auto& replica : replicas_) {
      callers.push_back(std::make_unique<Caller>(replica->address()));
    }
    return callers;
  }

  // As jobs ask: by key where they know it, else with the profile.
  void Plan(int number) {
    std::mt19937_64 draw(options_.seed * 1000 + static_cast<uint64_t>(number));
    const auto callers = CallersToAll();
    std::map<int, v1::PlanKey> keys;
    while (asking_) {
      Caller& caller = *callers[draw() % callers.size()];
      const int network = static_cast<int>(draw() % kNetworks);
      const auto known = keys.find(network);
      if (known == keys.end() || draw() % 4 == 0) {
        v1::ComputePlanResponse computed;
        const v1::ComputePlanRequest request = PlanRequest(kStages, network, kShare);
        const grpc::Status status =
            caller.Ask(absl::StrCat(kPlanMethods, "ComputePlan"), request, &computed);
        tally_.Count("compute", status);
        if (!status.ok()) continue;
        Judge(network, caller.reply());
        keys[network] = computed.key();
      } else {
        v1::GetPlanResponse got;
        const grpc::Status status =
            caller.Ask(absl::StrCat(kPlanMethods, "GetPlan"), GetRequest(known->second), &got);
        tally_.Count("get", status);
        if (!status.ok()) continue;
        v1::ComputePlanResponse as_computed;
        *as_computed.mutable_plan() = got.plan();
        Judge(network, as_computed.SerializeAsString());
      }
    }
  }

  void Judge(int network, const std::string& reply) {
    const absl::Status right = CheckAnswer(PlanRequest(kStages, network, kShare), reply);
    if (!right.ok()) tally_.Wrong(std::string(right.message()));
  }

  // Of plans of its own, so that nobody else's decision stands against it; and looks at earlier ones.
  void Decide(size_t index) {
    std::mt19937_64 draw(options_.seed * 1000 + 500 + static_cast<uint64_t>(index));
    const auto callers = CallersToAll();
    Caller& caller = *callers[index];
    std::vector<KeptDecision>& decided = decided_[index];
    std::deque<KeptDecision> over;
    for (int n = 0; asking_; ++n) {
      std::this_thread::sleep_for(milliseconds(20));
      const int network = kFirstDecided + static_cast<int>(index) * 10000000 + n;
      v1::ComputePlanResponse computed;
      if (!caller
               .Ask(absl::StrCat(kPlanMethods, "ComputePlan"),
                    PlanRequest(kStages, network, kShare), &computed)
               .ok()) {
        continue;
      }
      // The others have the plan, too: what is decided here must reach them.
      for (const auto& other : callers) {
        v1::ComputePlanResponse ignored;
        if (other.get() == &caller) continue;
        tally_.Count("compute", other->Ask(absl::StrCat(kPlanMethods, "ComputePlan"),
                                           PlanRequest(kStages, network, kShare), &ignored));
      }
      if (std::optional<KeptDecision> made =
              MakeOne(&caller, computed, DiskOf(index), static_cast<int>(draw() % 3))) {
        if (decided.size() >= kRemembered) {
          std::swap(decided[draw() % decided.size()], decided.back());
          over.push_back(decided.back());
          decided.pop_back();
        }
        decided.push_back(*made);
      } else {
        over.push_back({computed.key(), 0, 0, DecidedAs::kPinned, {}});  // or not
      }
      DeleteAll(&caller, &over);
      if (!decided.empty()) LookNow(&caller, index, decided[draw() % decided.size()]);
    }
  }

  // What is looked at no more goes: servers keep what is decided for ever, plans and all, and their memory has
  // to stay as it is. What cannot go now goes later.
  void DeleteAll(Caller* caller, std::deque<KeptDecision>* over) {
    while (!over->empty()) {
      const KeptDecision& first = over->front();
      if (first.as != DecidedAs::kDeleted && !Delete(caller, first.key).has_value()) return;
      over->pop_front();
    }
  }

  // Nothing unless it was acknowledged; else whether there was something to go.
  std::optional<bool> Delete(Caller* caller, const v1::PlanKey& key) {
    v1::DeletePlanRequest request;
    *request.mutable_key() = key;
    v1::DeletePlanResponse response;
    const grpc::Status status =
        caller->Ask(absl::StrCat(kAdminMethods, "DeletePlan"), request, &response);
    tally_.Count("delete", status);
    return status.ok() ? std::make_optional(response.deleted()) : std::nullopt;
  }

  // Nothing unless it was acknowledged: what was not may be so or not.
  std::optional<KeptDecision> MakeOne(Caller* caller, const v1::ComputePlanResponse& computed,
                                      const ServerDisk& on, int kind) {
    KeptDecision decision{computed.key(), computed.plan().budget_bytes(),
                          computed.plan().revision(), DecidedAs::kDeleted, on};
    if (kind == 0) {
      return Delete(caller, decision.key).value_or(false) ? std::make_optional(decision)
                                                          : std::nullopt;
    }
    if (!Pin(caller, decision)) return std::nullopt;
    decision.as = DecidedAs::kPinned;
    if (kind == 1) return decision;
    if (!Unpin(caller, decision)) return std::nullopt;
    decision.as = DecidedAs::kUnpinned;
    return decision;
  }

  template <class Request>
  static Request Of(const KeptDecision& decision) {
    Request request;
    *request.mutable_key() = decision.key;
    request.set_budget_bytes(decision.budget_bytes);
    request.set_revision(decision.revision);
    return request;
  }
  bool Pin(Caller* caller, const KeptDecision& decision) {
    v1::PinPlanResponse pinned;
    const grpc::Status status = caller->Ask(absl::StrCat(kAdminMethods, "PinPlan"),
                                            Of<v1::PinPlanRequest>(decision), &pinned);
    tally_.Count("pin", status);
    return status.ok();
  }
  bool Unpin(Caller* caller, const KeptDecision& decision) {
    v1::UnpinPlanResponse unpinned;
    const grpc::Status status = caller->Ask(absl::StrCat(kAdminMethods, "UnpinPlan"),
                                            Of<v1::UnpinPlanRequest>(decision), &unpinned);
    tally_.Count("unpin", status);
    return status.ok();
  }

  Looked Look(Caller* caller, const KeptDecision& decision) {
    return decision.as == DecidedAs::kDeleted ? LookUp(caller, decision)
                                              : LookAtList(caller, decision);
  }
  Looked LookUp(Caller* caller, const KeptDecision& decision) {
    v1::GetPlanResponse got;
    const grpc::Status status =
        caller->Ask(absl::StrCat(kPlanMethods, "GetPlan"), GetRequest(decision.key), &got);
    tally_.Count("look", status);
    if (status.ok()) return {true, absl::StrCat(TextOf(decision), ": it has come back")};
    return {status.error_code() == grpc::NOT_FOUND, ""};
  }
  Looked LookAtList(Caller* caller, const KeptDecision& decision) {
    v1::ListPlansRequest list;
    *list.mutable_key() = decision.key;
    v1::ListPlansResponse listed;
    const grpc::Status status = caller->Ask(absl::StrCat(kPlanMethods, "ListPlans"), list, &listed);
    tally_.Count("look", status);
    if (!status.ok() && status.error_code() != grpc::NOT_FOUND) return {};
    return {true, WhatIsLost(decision, listed)};
  }

  // At the replica that has acknowledged it; what it cannot say now is no answer. One that has lost that disk has time to hear
  // of it again. Its disk is looked at after its answer: what it says before it loses one has to be right.
  void LookNow(Caller* caller, size_t index, const KeptDecision& decision) {
    const Clock::time_point heard = Clock::now() + kHearing;
    Looked looked = Look(caller, decision);
    while (!looked.wrong.empty() && !HasOnDisk(decision, DiskOf(index)) && Clock::now() < heard) {
      if (!asking_) return;  // LookEverywhere asks it again
      std::this_thread::sleep_for(kBetweenLooks);
      looked = Look(caller, decision);
    }
    if (looked.said && !HasOnDisk(decision, DiskOf(index))) ++looked_at_without_disk_;
    if (!looked.wrong.empty()) {
      tally_.Wrong(absl::StrCat(looked.wrong, ", at ", Seconds(), " s, at its own replica"));
    }
  }

  // At the end every replica has to say that it holds: its own at once, others, and its own without the disk that it had, once
  // they have heard of it. Replicas that share nothing know of their own alone.
  void LookEverywhere() {
    const auto callers = CallersToAll();
    const bool shared = options_.break_shared != nullptr;
    const Clock::time_point begun = Clock::now();
    for (size_t by = 0; by < decided_.size(); ++by) {
      for (const KeptDecision& decision : decided_[by]) {
        for (size_t i = 0; i < callers.size(); ++i) {
          if (i != by && !shared) continue;
          ++looked_at_;
          LookAtLast(callers[i].get(), decision, HasOnDisk(decision, DiskOf(i)),
                     begun + kLastPatience, absl::StrCat(", at the end, at replica ", i));
        }
      }
    }
    looked_for_ = std::chrono::duration<double>(Clock::now() - begun).count();
  }

  void LookAtLast(Caller* caller, const KeptDecision& decision, bool has_it, Clock::time_point end,
                  const std::string& where) {
    Looked looked = Look(caller, decision);
    while (Clock::now() < end && (!looked.said || (!looked.wrong.empty() && !has_it))) {
      std::this_thread::sleep_for(kBetweenLooks);
      looked = Look(caller, decision);
    }
    if (!looked.wrong.empty()) tally_.Wrong(absl::StrCat(looked.wrong, where));
    if (!looked.said) {
      tally_.Wrong(absl::StrCat(TextOf(decision), ": nobody says whether it holds", where));
    }
  }

  absl::Status Report() {
    std::printf("%s", faults_.Report().c_str());
    tally_.Print();
    std::printf("looks at decisions at the end: %lld, in %.1f s\n",
                static_cast<long long>(looked_at_), looked_for_);
    if (options_.break_decisions) {
      std::printf("looks at decisions whose server had lost its disk: %lld\n",
                  static_cast<long long>(looked_at_without_disk_));
    }
    const absl::Status flat = ReportMemory();
    if (absl::Status wrong = tally_.wrong(); !wrong.ok()) return wrong;
    if (looked_at_ == 0) return absl::InternalError("nothing was decided");
    if (!flat.ok()) return flat;
    return faults_.Judge(options_.allow_skipped);
  }

  absl::Status ReportMemory() {
    // In less the caches and the allocator have not found their size.
    const bool judged = options_.seconds >= kLeastSecondsOfMemory;
    std::printf("%s\n", judged ? kFlatMemoryRule : "memory is judged from a minute on");
    absl::Status status;
    for (size_t i = 0; i < memory_.size(); ++i) {
      std::printf("replica %zu: at most %s resident", i,
                  MegabytesOf(memory_[i].most_bytes()).c_str());
      const std::optional<MemoryVerdict> verdict = memory_[i].Judge(broke_until_);
      if (verdict) {
        std::printf(", from %.0f s on %s in the second quarter, %s in the last (at most %s)",
                    verdict->from_second, MegabytesOf(verdict->early_bytes).c_str(),
                    MegabytesOf(verdict->late_bytes).c_str(),
                    MegabytesOf(verdict->most_bytes()).c_str());
      }
      std::printf("\n");
      if (judged && !(verdict && verdict->is_flat())) {
        status = absl::InternalError(absl::StrCat(
            "replica ", i, verdict ? ": memory grew" : ": too little was seen of its memory"));
      }
    }
    return status;
  }

  const CrashOptions& options_;
  const Clock::time_point begun_ = Clock::now();
  std::mt19937_64 draw_;
  std::vector<std::unique_ptr<CrashReplica>> replicas_;
  std::mutex processes_mutex_;       // of what WatchMemory reads, while callers ask
  std::vector<MemoryTrail> memory_;  // of each replica
  std::atomic<bool> asking_{false};
  Tally tally_;
  FaultTally faults_;
  std::vector<std::vector<KeptDecision>> decided_;  // by replica, each of its caller's thread
  int decisions_turn_ = 0;
  std::atomic<int64_t> looked_at_without_disk_{0};
  double broke_until_ = 0;
  int64_t looked_at_ = 0;
  double looked_for_ = 0;  // seconds
};

}  // namespace

absl::Status RunCrashes(const CrashOptions& options) { return Crashes(options).Run(); }

}  // namespace stowage
