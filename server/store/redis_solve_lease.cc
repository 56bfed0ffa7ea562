#include "server/store/redis_solve_lease.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

// KEYS: lease. ARGV: token, milliseconds to live. One that Redis has lost, in a failover say, is taken again
// unless another one has it by now.
constexpr char kRenew[] = R"(
local there = redis.call('GET', KEYS[1])
if there and there ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
)";

// KEYS: lease. ARGV: token.
constexpr char kRelease[] = R"(
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
)";

// Not guessed and not repeated: whoever holds it may delete the lease.
std::string NewToken() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&token, absl::Hex(random(), absl::kZeroPad8));
  return token;
}

}  // namespace

// The leases held by this server, and the thread that keeps them alive.
class RedisSolveLease::Renewals {
 public:
  Renewals(std::shared_ptr<RedisClient> redis, std::chrono::milliseconds time_to_live)
      : redis_(std::move(redis)), time_to_live_(time_to_live), thread_([this] { Work(); }) {}

  ~Renewals() { Stop(); }

  void Stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    wake_.notify_all();
    std::lock_guard<std::mutex> lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }

  void Add(const std::string& name, const std::string& token) {
    std::lock_guard<std::mutex> lock(mutex_);
    held_[token] = name;
  }

  void Release(const std::string& token) {
    std::string name;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      name = held_[token];
      held_.erase(token);
    }
    Delete(name, token);
  }

 private:
  // Where it fails the lease ends by itself.
  void Delete(const std::string& name, const std::string& token) {
    redis_->Run({{"EVAL", kRelease, "1", name, token}}).status().IgnoreError();
  }

  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (!wake_.wait_for(lock, time_to_live_ / 3, [this] { return stopped_; })) {
      const std::map<std::string, std::string> renewed = held_;
      if (renewed.empty()) continue;
      lock.unlock();
      // What could not be renewed is tried again in time, or is lost.
      for (const auto& [token, name] : renewed) {
        redis_->Run({{"EVAL", kRenew, "1", name, token, absl::StrCat(time_to_live_.count())}})
            .status()
            .IgnoreError();
      }
      lock.lock();
      // What was let go of meanwhile may have been taken again after that.
      std::map<std::string, std::string> let_go;
      for (const auto& [token, name] : renewed) {
        if (held_.count(token) == 0) let_go[token] = name;
      }
      if (let_go.empty()) continue;
      lock.unlock();
      for (const auto& [token, name] : let_go) Delete(name, token);
      lock.lock();
    }
  }

  const std::shared_ptr<RedisClient> redis_;
  const std::chrono::milliseconds time_to_live_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<std::string, std::string> held_;  // token to the lease's name
  bool stopped_ = false;
  std::mutex join_mutex_;
  std::thread thread_;  // last: uses all of the above
};

class RedisSolveLease::Held final : public HeldLease {
 public:
  Held(std::shared_ptr<Renewals> renewals, std::string token)
      : renewals_(std::move(renewals)), token_(std::move(token)) {}
  ~Held() override { renewals_->Release(token_); }

 private:
  const std::shared_ptr<Renewals> renewals_;
  const std::string token_;
};

RedisSolveLease::RedisSolveLease(const RedisLeaseOptions& options,
                                 std::shared_ptr<RedisClient> redis)
    : options_(options),
      keys_(options.prefix, options.keyed, redis->is_cluster()),
      redis_(std::move(redis)),
      renewals_(std::make_shared<Renewals>(redis_, options.time_to_live)) {}

RedisSolveLease::~RedisSolveLease() { renewals_->Stop(); }

LeaseAnswer RedisSolveLease::Acquire(const SolveQuestion& question) {
  const std::string name = keys_.Lease(question.key, question.budget);
  const std::string token = NewToken();
  const auto replies =
      redis_->Run({{"SET", name, token, "NX", "PX", absl::StrCat(options_.time_to_live.count())}});
  if (!replies.ok() || !StatusOf(replies->front()).ok()) return {LeaseState::kFailed, nullptr};
  if (replies->front().kind == RedisReply::Kind::kNothing) return {LeaseState::kTaken, nullptr};
  renewals_->Add(name, token);
  return {LeaseState::kGranted, std::make_unique<Held>(renewals_, token)};
}

}  // namespace stowage
