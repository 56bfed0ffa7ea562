#include "tests/bench/load/adversaries.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "stowage/v1/plan_admin_service.pb.h"
#include "tests/bench/load/answer_check.h"
#include "tests/bench/load/call_driver.h"
#include "tests/bench/load/service_process.h"

namespace stowage {
namespace {

using std::chrono::milliseconds;

constexpr char kMethods[] = "/stowage.v1.PlanService/";
constexpr char kAdminMethods[] = "/stowage.v1.PlanAdminService/";
constexpr char kStuckToken[] = "load-token-of-the-stuck";
constexpr char kListToken[] = "load-token-of-the-lister";
constexpr char kFloodToken[] = "load-token-of-the-flood";
constexpr char kAdminToken[] = "load-token-of-the-admin";

constexpr size_t kStuckBytes = size_t{16} << 20;
constexpr int kStuckCalls = 4;
constexpr int kStuckStages = 1500;
constexpr int kFloodCalls = 200;
constexpr int kStages = 40;
// Beyond all networks of the mixed load.
constexpr int kFirstFlood = 300000000, kFirstStuck = 400000000, kFirstDecided = 500000000;
constexpr double kShare = 0.5;

const std::vector<std::string>& AllKinds() {
  static const auto* const kKinds =
      new std::vector<std::string>{"stuck", "lists", "flood", "decisions"};
  return *kKinds;
}

// As large as a message may be: the plan of a long chain, and bytes that mean nothing.
std::string StuckRequest(int seed) {
  v1::ComputePlanRequest request = PlanRequest(kStuckStages, seed, 0.3);
  constexpr int kUnknownField = 1000;
  constexpr size_t kRoom = 64;
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
      kUnknownField, std::string(kStuckBytes - kRoom - request.ByteSizeLong(), 'x'));
  return request.SerializeAsString();
}

// One call after the other, each answered before the next.
class Asker {
 public:
  Asker(const std::string& address, const std::string& token) : driver_(address, 1, token) {}

  template <class Response>
  grpc::Status Ask(const std::string& method, const google::protobuf::Message& request,
                   Response* response, const char* service = kMethods) {
    grpc::Status status;
    driver_.Start(service + method, request.SerializeAsString(), milliseconds(20000),
                  [&](const CallResult& result) {
                    status = result.status;
                    if (status.ok()) response->ParseFromString(result.reply);
                  });
    driver_.Finish();
    return status;
  }

 private:
  CallDriver driver_;
};

}  // namespace

const char kFairToken[] = "load-token-of-the-fair-tenant";

std::string AdversaryTokens() {
  return absl::StrCat(kFairToken, " fair planner fair\n", kStuckToken, " stuck planner stuck\n",
                      kListToken, " lister reader lister\n", kFloodToken, " - planner flood\n",
                      kAdminToken, " - admin admin\n");
}

absl::Status CheckAdversaries(const std::set<std::string>& kinds) {
  for (const std::string& kind : kinds) {
    if (std::find(AllKinds().begin(), AllKinds().end(), kind) != AllKinds().end()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--adversaries=", kind, ": must be of ", absl::StrJoin(AllKinds(), ", ")));
  }
  return absl::OkStatus();
}

void Adversaries::Start() {
  acting_ = true;
  const auto has = [this](const char* kind) { return options_.kinds.count(kind) > 0; };
  if (has("stuck")) threads_.emplace_back([this] { BeStuck(); });
  if (has("lists")) {
    for (const char* token : {kAdminToken, kListToken}) {
      threads_.emplace_back([this, token] { List(token); });
    }
  }
  if (has("flood")) threads_.emplace_back([this] { Flood(); });
  if (has("decisions")) threads_.emplace_back([this] { Decide(); });
}

void Adversaries::Stop() {
  acting_ = false;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

std::map<std::string, int64_t> Adversaries::counts() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return counts_;
}

absl::Status Adversaries::wrong() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return wrong_;
}

void Adversaries::Count(const std::string& kind, int code) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++counts_[absl::StrCat(kind, " code ", code)];
}

void Adversaries::Wrong(const std::string& why) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (wrong_.ok()) wrong_ = absl::InternalError(why);
}

void Adversaries::BeStuck() {
  CallDriver driver(options_.address, 2, kStuckToken);
  while (acting_) {
    while (driver.open() < kStuckCalls) {
      driver.Start(absl::StrCat(kMethods, "ComputePlan"), StuckRequest(kFirstStuck + next_++),
                   milliseconds(15000), [this](const CallResult& result) {
                     Count("stuck", result.status.error_code());
                   });
    }
    // One that is refused comes back no sooner than a client would.
    driver.Poll(milliseconds(20));
    std::this_thread::sleep_for(milliseconds(100));
  }
}

void Adversaries::List(const std::string& token) {
  CallDriver driver(options_.address, 1, token);
  v1::ListPlansRequest request;
  while (acting_) {
    driver.Start(absl::StrCat(kMethods, "ListPlans"), request.SerializeAsString(),
                 milliseconds(20000), [this, &request](const CallResult& result) {
                   Count("list", result.status.error_code());
                   v1::ListPlansResponse page;
                   page.ParseFromString(result.reply);
                   request.set_page_token(page.next_page_token());
                 });
    driver.Finish();
  }
}

void Adversaries::Flood() {
  CallDriver driver(options_.address, 2, kFloodToken);
  while (acting_) {
    while (driver.open() < kFloodCalls) {
      const v1::ComputePlanRequest request = PlanRequest(kStages, kFirstFlood + next_++, kShare);
      driver.Start(absl::StrCat(kMethods, "ComputePlan"), request.SerializeAsString(),
                   milliseconds(5000), [this, request](const CallResult& result) {
                     Count("flood", result.status.error_code());
                     if (!result.status.ok()) return;
                     const absl::Status right = CheckAnswer(request, result.reply);
                     if (!right.ok()) Wrong(std::string(right.message()));
                   });
    }
    driver.Poll(milliseconds(20));
    // As many in a second as one client can have turned away, without a processor of its own for it.
    std::this_thread::sleep_for(milliseconds(2));
  }
}

void Adversaries::Decide() {
  Asker fair(options_.address, kFairToken), admin(options_.address, kAdminToken);
  while (acting_) {
    v1::ComputePlanResponse doomed, kept;
    const int seed = kFirstDecided + next_++ * 2;
    const bool made = fair.Ask("ComputePlan", PlanRequest(kStages, seed, kShare), &doomed).ok() &&
                      fair.Ask("ComputePlan", PlanRequest(kStages, seed + 1, kShare), &kept).ok();
    if (!made) continue;
    v1::DeletePlanRequest deletion;
    *deletion.mutable_key() = doomed.key();
    v1::DeletePlanResponse deleted;
    const grpc::Status gone = admin.Ask("DeletePlan", deletion, &deleted, kAdminMethods);
    Count("delete", gone.error_code());
    v1::PinPlanRequest pin;
    *pin.mutable_key() = kept.key();
    pin.set_budget_bytes(kept.plan().budget_bytes());
    pin.set_revision(kept.plan().revision());
    v1::PinPlanResponse none;
    const grpc::Status pinned = admin.Ask("PinPlan", pin, &none, kAdminMethods);
    Count("pin", pinned.error_code());
    for (int look = 0; look < 4 && acting_; ++look) {
      if (look == 1 && options_.empty_store) options_.empty_store();
      v1::GetPlanRequest get;
      *get.add_keys() = doomed.key();
      get.mutable_budget()->set_share_of_store_all(kShare);
      v1::GetPlanResponse got;
      if (gone.ok() && fair.Ask("GetPlan", get, &got).ok()) Wrong("a deleted plan came back");
      v1::ListPlansRequest list;
      *list.mutable_key() = kept.key();
      v1::ListPlansResponse listed;
      const bool asked = admin.Ask("ListPlans", list, &listed).ok();
      const bool still = listed.plans_size() > 0 && listed.plans(0).pinned();
      if (pinned.ok() && asked && !still) Wrong("a pinned plan is pinned no longer");
      std::this_thread::sleep_for(milliseconds(500));
    }
  }
}

}  // namespace stowage
