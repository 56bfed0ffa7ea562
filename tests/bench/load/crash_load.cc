#include "tests/bench/load/crash_load.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
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
#include "tests/bench/load/service_process.h"
#include "tests/support/temporary_folder.h"

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

// A file system of its own, which can be filled up; a folder where none may be mounted.
class SmallDisk {
 public:
  SmallDisk() {
    mounted_ = mount("none", folder_.path().c_str(), "tmpfs", 0, "size=48m,mode=0700") == 0;
  }
  ~SmallDisk() {
    if (mounted_) umount2(folder_.path().c_str(), MNT_DETACH);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  bool can_fill() const { return mounted_; }
  std::string PathOf(const std::string& name) const { return folder_ / name; }
  void Fill() {
    std::ofstream file(PathOf("filler"), std::ios::binary);
    const std::string block(65536, 'x');
    while (file.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
  }
  void Empty() { unlink(PathOf("filler").c_str()); }

 private:
  const TemporaryFolder folder_;
  bool mounted_ = false;
};

// A stowaged on its own files, at one address for all its lives.
class Replica {
 public:
  Replica(const CrashOptions& options, int index) : command_(options.stowaged), index_(index) {
    std::ofstream(clock_) << "+0\n";
    if (!options.faketime.empty()) {
      command_.insert(
          command_.begin(),
          {"/usr/bin/env", "LD_PRELOAD=" + options.faketime, "FAKETIME_TIMESTAMP_FILE=" + clock_,
           "FAKETIME_CACHE_DURATION=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"});
    }
    command_.push_back("--store=sqlite:" + disk.PathOf("plans.db"));
    command_.push_back("--decisions_file=" + disk.PathOf("decisions.db"));
  }

  absl::Status Start() {
    std::vector<std::string> command = command_;
    command.push_back("--listen=" + (address_.empty() ? "127.0.0.1:0" : address_));
    absl::StatusOr<ServiceProcess> started = ServiceProcess::Start(command);
    for (int i = 0; i < 20 && !started.ok(); ++i) {  // the port may be somebody else's for a moment
      std::this_thread::sleep_for(std::chrono::milliseconds(250));
      started = ServiceProcess::Start(command);
    }
    if (!started.ok()) return started.status();
    process_ = std::make_unique<ServiceProcess>(*std::move(started));
    address_ = process_->address();
    return absl::OkStatus();
  }
  void Kill() {
    most_resident_ = std::max(most_resident_, process_->resident_bytes());
    process_->process().Signal(SIGKILL);
    process_->process().Wait();
  }
  void Stop() { process_->process().Signal(SIGSTOP); }
  void Continue() { process_->process().Signal(SIGCONT); }
  // The clock from now on, as seconds beside the right one.
  void SetClock(int seconds) {
    std::ofstream(clock_) << (seconds < 0 ? "" : "+") << seconds << "\n";
  }

  int index() const { return index_; }
  const std::string& address() const { return address_; }
  int64_t most_resident_bytes() const {
    return std::max(most_resident_, process_->resident_bytes());
  }

  SmallDisk disk;

 private:
  const TemporaryFolder times_;
  const std::string clock_ = times_ / "clock";
  std::vector<std::string> command_;
  const int index_;
  std::string address_;
  std::unique_ptr<ServiceProcess> process_;
  int64_t most_resident_ = 0;
};

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

// What a replica has acknowledged.
struct Decision {
  v1::PlanKey key;
  bool deleted = false;  // else pinned, or not
  bool pinned = false;
};

class Crashes {
 public:
  explicit Crashes(const CrashOptions& options) : options_(options), draw_(options.seed) {
    for (int i = 0; i < options.replicas; ++i) {
      replicas_.push_back(std::make_unique<Replica>(options, i));
    }
    decided_.resize(replicas_.size());
  }

  absl::Status Run() {
    for (const auto& replica : replicas_) {
      if (absl::Status started = replica->Start(); !started.ok()) return started;
    }
    asking_ = true;
    std::vector<std::thread> callers;
    for (int i = 0; i < kPlanners; ++i) callers.emplace_back([this, i] { Plan(i); });
    for (const auto& replica : replicas_) {
      callers.emplace_back([this, index = replica->index()] { Decide(index); });
    }
    const absl::Status broken = Break();
    asking_ = false;
    for (std::thread& caller : callers) caller.join();
    if (!broken.ok()) return broken;
    std::this_thread::sleep_for(std::chrono::duration<double>(options_.calm_seconds));
    LookEverywhere();
    return Report();
  }

 private:
  // One fault after the other, each mended before the next.
  absl::Status Break() {
    const auto end = Clock::now() + std::chrono::duration<double>(options_.seconds);
    absl::Status status;
    while (status.ok() && Clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::duration<double>(options_.pause_seconds));
      Replica& replica = *replicas_[draw_() % replicas_.size()];
      switch (draw_() % 6) {
        case 0:
        case 1:
          status = KillAndStart(&replica);
          break;
        case 2:
          Freeze(&replica);
          break;
        case 3:
          FillDisk(&replica);
          break;
        case 4:
          JumpClock(&replica);
          break;
        default:
          BreakShared();
      }
    }
    if (options_.mend_shared) options_.mend_shared();
    for (const auto& replica : replicas_) replica->SetClock(0);
    return status;
  }

  absl::Status KillAndStart(Replica* replica) {
    ++faults_["replica killed"];
    replica->Kill();
    return replica->Start();
  }
  void Freeze(Replica* replica) {
    ++faults_["replica stopped for a second"];
    replica->Stop();
    std::this_thread::sleep_for(std::chrono::seconds(1));
    replica->Continue();
  }
  void FillDisk(Replica* replica) {
    if (!replica->disk.can_fill()) return;
    ++faults_["disk full for two seconds"];
    replica->disk.Fill();
    std::this_thread::sleep_for(std::chrono::seconds(2));
    replica->disk.Empty();
  }
  void JumpClock(Replica* replica) {
    if (options_.faketime.empty()) return;
    ++faults_["clock moved by up to ten minutes"];
    replica->SetClock(static_cast<int>(draw_() % 1200) - 600);
  }
  void BreakShared() {
    if (!options_.break_shared) return;
    ++faults_["what is shared broken or mended"];
    options_.break_shared();
  }

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
  void Decide(int index) {
    std::mt19937_64 draw(options_.seed * 1000 + 500 + static_cast<uint64_t>(index));
    const auto callers = CallersToAll();
    Caller& caller = *callers[static_cast<size_t>(index)];
    std::vector<Decision>& decided = decided_[static_cast<size_t>(index)];
    for (int n = 0; asking_; ++n) {
      std::this_thread::sleep_for(milliseconds(20));
      const int network = kFirstDecided + index * 10000000 + n;
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
      if (std::optional<Decision> made = MakeOne(&caller, computed, static_cast<int>(draw() % 3))) {
        if (decided.size() < kRemembered) {
          decided.push_back(*made);
        } else {
          decided[draw() % decided.size()] = *made;
        }
      }
      if (!decided.empty()) Look(&caller, decided[draw() % decided.size()], "its replica");
    }
  }

  // Nothing unless it was acknowledged: what was not may be so or not.
  std::optional<Decision> MakeOne(Caller* caller, const v1::ComputePlanResponse& computed,
                                  int kind) {
    Decision decision;
    decision.key = computed.key();
    if (kind == 0) {
      v1::DeletePlanRequest request;
      *request.mutable_key() = computed.key();
      v1::DeletePlanResponse response;
      const grpc::Status status =
          caller->Ask(absl::StrCat(kAdminMethods, "DeletePlan"), request, &response);
      tally_.Count("delete", status);
      decision.deleted = true;
      return status.ok() ? std::make_optional(decision) : std::nullopt;
    }
    v1::PinPlanRequest pin;
    *pin.mutable_key() = computed.key();
    pin.set_budget_bytes(computed.plan().budget_bytes());
    pin.set_revision(computed.plan().revision());
    v1::PinPlanResponse pinned;
    grpc::Status status = caller->Ask(absl::StrCat(kAdminMethods, "PinPlan"), pin, &pinned);
    tally_.Count("pin", status);
    if (!status.ok()) return std::nullopt;
    decision.pinned = true;
    if (kind == 1) return decision;
    v1::UnpinPlanRequest unpin;
    *unpin.mutable_key() = pin.key();
    unpin.set_budget_bytes(pin.budget_bytes());
    unpin.set_revision(pin.revision());
    v1::UnpinPlanResponse unpinned;
    status = caller->Ask(absl::StrCat(kAdminMethods, "UnpinPlan"), unpin, &unpinned);
    tally_.Count("unpin", status);
    decision.pinned = false;
    return status.ok() ? std::make_optional(decision) : std::nullopt;
  }

  // Whether the replica says what was acknowledged; what it cannot say now is no answer. A plan that a cache has
  // lost is no decision that is lost.
  void Look(Caller* caller, const Decision& decision, const std::string& where) {
    if (decision.deleted) {
      v1::GetPlanResponse got;
      const grpc::Status status =
          caller->Ask(absl::StrCat(kPlanMethods, "GetPlan"), GetRequest(decision.key), &got);
      tally_.Count("look", status);
      if (status.ok()) tally_.Wrong(absl::StrCat("a deleted plan came back at ", where));
      return;
    }
    v1::ListPlansRequest list;
    *list.mutable_key() = decision.key;
    v1::ListPlansResponse listed;
    const grpc::Status status = caller->Ask(absl::StrCat(kPlanMethods, "ListPlans"), list, &listed);
    tally_.Count("look", status);
    if (!status.ok() || listed.plans_size() == 0) return;
    if (listed.plans(0).pinned() == decision.pinned) return;
    tally_.Wrong(absl::StrCat("a plan that was ", decision.pinned ? "pinned" : "unpinned",
                              " is so no longer at ", where));
  }

  // Replicas that share nothing know of their own alone.
  void LookEverywhere() {
    const auto callers = CallersToAll();
    const bool shared = options_.break_shared != nullptr;
    for (size_t by = 0; by < decided_.size(); ++by) {
      for (const Decision& decision : decided_[by]) {
        for (size_t i = 0; i < callers.size(); ++i) {
          if (i != by && !shared) continue;
          ++looked_at_;
          Look(callers[i].get(), decision, absl::StrCat("replica ", i, ", at the end"));
        }
      }
    }
  }

  absl::Status Report() {
    for (const auto& [fault, count] : faults_) std::printf("%-40s %d\n", fault.c_str(), count);
    tally_.Print();
    std::printf("looks at decisions at the end: %lld\n", static_cast<long long>(looked_at_));
    for (const auto& replica : replicas_) {
      std::printf("replica %d: at most %.1f MB resident\n", replica->index(),
                  1e-6 * static_cast<double>(replica->most_resident_bytes()));
    }
    if (absl::Status wrong = tally_.wrong(); !wrong.ok()) return wrong;
    if (faults_["replica killed"] == 0) return absl::InternalError("no replica was killed");
    if (looked_at_ == 0) return absl::InternalError("nothing was decided");
    return absl::OkStatus();
  }

  const CrashOptions& options_;
  std::mt19937_64 draw_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::atomic<bool> asking_{false};
  Tally tally_;
  std::map<std::string, int> faults_;
  std::vector<std::vector<Decision>> decided_;  // by replica, each of its caller's thread
  int64_t looked_at_ = 0;
};

}  // namespace

absl::Status RunCrashes(const CrashOptions& options) { return Crashes(options).Run(); }

}  // namespace stowage
