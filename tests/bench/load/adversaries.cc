#include "tests/bench/load/adversaries.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
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
constexpr char kIdleToken[] = "load-token-of-the-idle";

constexpr size_t kStuckBytes = size_t{16} << 20;
constexpr int kStuckCalls = 4;
constexpr int kStuckStages = 1500;
constexpr int kFloodCalls = 200;
constexpr int kIdleCalls = 10000, kIdleConnections = 100;
constexpr int kStages = 40;
// Beyond all networks of the mixed load.
constexpr int kFirstFlood = 300000000, kFirstStuck = 400000000, kFirstDecided = 500000000;
constexpr double kShare = 0.5;

const std::vector<std::string>& AllKinds() {
  static const auto* const kKinds =
      new std::vector<std::string>{"stuck", "lists", "flood", "open", "decisions"};
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

// Calls that begin, and ask for nothing.
class IdleCalls {
 public:
  using Done = std::function<void(const grpc::Status&)>;

  IdleCalls(const std::string& address, int connections, std::string token)
      : token_(std::move(token)) {
    for (int i = 0; i < connections; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      stubs_.push_back(std::make_unique<grpc::GenericStub>(
          grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments)));
    }
  }
  ~IdleCalls() {
    for (const auto& [_, call] : calls_) call->context.TryCancel();
    while (!calls_.empty()) Poll(milliseconds(100), [](const grpc::Status&) {});
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) continue;
  }

  size_t open() const { return calls_.size(); }

  void Start(const std::string& method, milliseconds timeout) {
    auto call = std::make_unique<Call>();
    call->context.set_deadline(std::chrono::system_clock::now() + timeout);
    call->context.AddMetadata("authorization", "Bearer " + token_);
    call->stream = stubs_[next_++ % stubs_.size()]->PrepareCall(&call->context, method, &queue_);
    call->stream->StartCall(call.get());
    call->stream->Finish(&call->status, call.get());
    void* const tag = call.get();
    calls_.emplace(tag, std::move(call));
  }

  // Of those that end within `wait`, `done` hears how.
  void Poll(milliseconds wait, const Done& done) {
    const auto until = std::chrono::system_clock::now() + wait;
    void* tag = nullptr;
    bool ok = false;
    while (queue_.AsyncNext(&tag, &ok, until) == grpc::CompletionQueue::GOT_EVENT) {
      const auto call = calls_.find(tag);
      if (++call->second->events < 2) continue;  // it has begun
      done(call->second->status);
      calls_.erase(call);
    }
  }

 private:
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream;
    grpc::Status status;
    int events = 0;  // its beginning and its end
  };

  const std::string token_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  grpc::CompletionQueue queue_;
  size_t next_ = 0;
  std::map<void*, std::unique_ptr<Call>> calls_;
};

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
                      kIdleToken, " idle planner idle\n", kAdminToken, " - admin admin\n");
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
  if (has("open")) threads_.emplace_back([this] { HoldOpen(); });
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

void Adversaries::HoldOpen() {
  IdleCalls calls(options_.address, kIdleConnections, kIdleToken);
  while (acting_) {
    // No faster than that, so that opening them is not what takes the processor.
    for (int i = 0; i < 100 && calls.open() < kIdleCalls; ++i) {
      calls.Start(absl::StrCat(kMethods, "ComputePlan"), milliseconds(60000));
    }
    calls.Poll(milliseconds(20),
               [this](const grpc::Status& status) { Count("open", status.error_code()); });
    std::lock_guard<std::mutex> lock(mutex_);
    int64_t& most = counts_["open at once"];
    most = std::max(most, static_cast<int64_t>(calls.open()));
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
