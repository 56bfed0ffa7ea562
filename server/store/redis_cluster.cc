#include "server/store/redis_cluster.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"

namespace stowage {
namespace {

constexpr int kSlots = 16384;
constexpr int kMostSendings = 4;
constexpr std::chrono::milliseconds kLearnPause{200};
constexpr size_t kLargestMap = size_t{4} << 20;

// CRC-16/XMODEM, as Redis's cluster specification has it.
int SlotOfText(absl::string_view text) {
  uint32_t crc = 0;
  for (const char c : text) {
    crc ^= static_cast<uint32_t>(static_cast<unsigned char>(c)) << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021 : 0);
    crc &= 0xffff;
  }
  return static_cast<int>(crc % kSlots);
}

std::string KeyOfCommand(const RedisCommand& command) {
  const size_t at = command.front() == "EVAL" ? 3 : 1;
  return command.size() > at ? command[at] : "";
}

// The first one that is of that word; null: none.
const RedisReply* FindError(const std::vector<RedisReply>& replies, const char* word) {
  const auto found = std::find_if(replies.begin(), replies.end(), [word](const RedisReply& reply) {
    return reply.kind == RedisReply::Kind::kError && reply.text == word;
  });
  return found == replies.end() ? nullptr : &*found;
}

// Each said to be for who is about to have the slot.
std::vector<RedisCommand> Asking(const std::vector<RedisCommand>& commands) {
  std::vector<RedisCommand> asking;
  for (const RedisCommand& command : commands) {
    asking.push_back({"ASKING"});
    asking.push_back(command);
  }
  return asking;
}

std::vector<RedisReply> WithoutAsking(std::vector<RedisReply> replies) {
  std::vector<RedisReply> kept;
  for (size_t i = 1; i < replies.size(); i += 2) kept.push_back(std::move(replies[i]));
  return kept;
}

absl::Status MovesError() {
  return absl::UnavailableError("the Redis cluster is moving what is asked for");
}

}  // namespace

int RedisSlotOf(const std::string& key) {
  const size_t open = key.find('{');
  const size_t close = open == std::string::npos ? open : key.find('}', open + 1);
  if (close == std::string::npos || close == open + 1) return SlotOfText(key);
  return SlotOfText(absl::string_view(key).substr(open + 1, close - open - 1));
}

const RedisSlotMap::Place* RedisSlotMap::PlaceOf(int slot) const {
  if (const auto moved = moved_.find(slot); moved != moved_.end()) return &moved->second;
  auto next = ranges_.upper_bound(slot);
  if (next == ranges_.begin() || (--next)->second.last < slot) return nullptr;
  return &next->second.place;
}

std::set<RedisSlotMap::Place> RedisSlotMap::Places() const {
  std::set<Place> places;
  for (const auto& [first, range] : ranges_) places.insert(range.place);
  return places;
}

bool RedisSlotMap::Learn(Ranges ranges) {
  const auto is_same = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second.last == b.second.last && a.second.place == b.second.place;
  };
  const bool is_first = ranges_.empty();
  const bool same =
      std::equal(ranges.begin(), ranges.end(), ranges_.begin(), ranges_.end(), is_same);
  ranges_ = std::move(ranges);
  const std::map<int, Place> moved = std::exchange(moved_, {});
  // What moved away may be back, where the ranges never had it elsewhere.
  const bool kept = std::all_of(moved.begin(), moved.end(), [this](const auto& one) {
    const Place* const place = PlaceOf(one.first);
    return place != nullptr && *place == one.second;
  });
  return !is_first && !(same && kept);
}

absl::StatusOr<RedisClient::Replies> RedisCluster::Run(const std::vector<RedisCommand>& commands) {
  return RunAt(KeyOfCommand(commands.front()), commands);
}

absl::StatusOr<RedisClient::Replies> RedisCluster::RunAt(
    const std::string& key, const std::vector<RedisCommand>& commands) {
  absl::StatusOr<Replies> replies = RunThrough(key, commands);
  if (absl::IsUnavailable(replies.status())) wrong_ = true;
  TellMetrics();
  return replies;
}

absl::StatusOr<RedisClient::Replies> RedisCluster::RunThrough(
    const std::string& key, const std::vector<RedisCommand>& commands) {
  if (absl::Status learned = LearnIfNeeded(); !learned.ok()) return learned;
  const int slot = RedisSlotOf(key);
  Pool pool = PoolOf(slot);
  if (!pool) return absl::UnavailableError("no server of the Redis cluster has this slot");
  bool asking = false;
  for (int sending = 0; sending < kMostSendings; ++sending) {
    auto replies = pool->Run(asking ? Asking(commands) : commands);
    if (!replies.ok()) return replies.status();
    if (asking) replies = WithoutAsking(*std::move(replies));
    if (FindError(*replies, "TRYAGAIN") != nullptr) return MovesError();
    const RedisReply* const moved = FindError(*replies, "MOVED");
    const RedisReply* const ask = FindError(*replies, "ASK");
    if (moved == nullptr && ask == nullptr) return replies;
    const RedisReply& sent_on = moved != nullptr ? *moved : *ask;
    Place place{sent_on.where.host, sent_on.where.port};
    if (place.first.empty()) place.first = pool->host();
    if (place.second == 0) return MovesError();
    if (moved != nullptr) NoteMoved(slot, place);
    pool = PoolAt(place);
    asking = moved == nullptr;
  }
  return MovesError();
}

absl::StatusOr<std::vector<RedisClient::Replies>> RedisCluster::RunOnAll(
    const std::vector<RedisCommand>& commands) {
  if (absl::Status learned = LearnIfNeeded(); !learned.ok()) return learned;
  std::vector<Pool> pools;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const Place& place : slots_.Places()) pools.push_back(PoolLocked(place));
  }
  std::vector<Replies> all;
  for (const Pool& pool : pools) {
    absl::StatusOr<Replies> replies = pool->Run(commands);
    if (!replies.ok()) {
      wrong_ = true;
      return replies.status();
    }
    all.push_back(*std::move(replies));
  }
  return all;
}

RedisCluster::Pool RedisCluster::PoolOf(int slot) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Place* const place = slots_.PlaceOf(slot);
  return place == nullptr ? nullptr : PoolLocked(*place);
}

RedisCluster::Pool RedisCluster::PoolAt(const Place& place) {
  std::lock_guard<std::mutex> lock(mutex_);
  return PoolLocked(place);
}

RedisCluster::Pool RedisCluster::PoolLocked(const Place& place) {
  Pool& pool = pools_[place];
  if (!pool) {
    RedisOptions options = options_;
    options.address.nodes.clear();
    options.address.host_or_path = place.first;
    options.address.port = place.second;
    options.metrics = nullptr;
    options.in_cluster = true;
    pool = std::make_shared<RedisPool>(options);
  }
  return pool;
}

void RedisCluster::NoteMoved(int slot, const Place& place) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    slots_.Moved(slot, place);
  }
  wrong_ = true;
  ++failovers_;
}

void RedisCluster::TellMetrics() {
  if (options_.metrics == nullptr) return;
  std::lock_guard<std::mutex> lock(mutex_);
  const bool rests = std::any_of(pools_.begin(), pools_.end(),
                                 [](const auto& pool) { return pool.second->resting(); });
  options_.metrics->RedisResting(options_.use, rests);
}

absl::Status RedisCluster::LearnIfNeeded() {
  const auto is_needed = [this] {
    std::lock_guard<std::mutex> lock(mutex_);
    return slots_.empty() || (wrong_ && Clock::now() >= next_learn_);
  };
  if (!is_needed()) return absl::OkStatus();
  std::lock_guard<std::mutex> learning(learn_mutex_);
  if (!is_needed()) return absl::OkStatus();
  const Clock::time_point deadline = Clock::now() + options_.timeout;
  const std::vector<Place> places = PlacesToAsk();
  absl::Status last = absl::UnavailableError("none is known");
  for (size_t i = 0; i < places.size(); ++i) {
    const Clock::time_point now = Clock::now();
    const auto share = (deadline - now) / static_cast<int>(places.size() - i);
    absl::StatusOr<Ranges> ranges = Ask(places[i], now + share);
    if (ranges.ok()) {
      Learned(*std::move(ranges));
      return absl::OkStatus();
    }
    last = ranges.status();
  }
  std::lock_guard<std::mutex> lock(mutex_);
  next_learn_ = Clock::now() + kLearnPause;
  return slots_.empty() ? last : absl::OkStatus();
}

std::vector<RedisCluster::Place> RedisCluster::PlacesToAsk() {
  std::vector<Place> places;
  std::lock_guard<std::mutex> lock(mutex_);
  // Those that answer go first.
  for (const bool rests : {false, true}) {
    for (const auto& [place, pool] : pools_) {
      if (pool->resting() == rests) places.push_back(place);
    }
  }
  for (const RedisHost& node : options_.address.nodes) {
    const Place place{node.host, node.port};
    if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
  }
  return places;
}

absl::StatusOr<RedisCluster::Ranges> RedisCluster::Ask(const Place& place,
                                                       Clock::time_point deadline) const {
  RedisAddress address = options_.address;
  address.host_or_path = place.first;
  address.port = place.second;
  const auto connection = RedisConnection::Open(address, deadline, options_.names);
  if (!connection.ok()) return connection.status();
  const auto replies = (*connection)->Run({{"CLUSTER", "SLOTS"}}, deadline, kLargestMap);
  if (!replies.ok()) return replies.status();
  Ranges ranges;
  for (const RedisReply& range : replies->front().list) {
    // First slot, last slot, who has them: host, port and more; then replicas.
    if (range.list.size() < 3 || range.list[2].list.size() < 2) continue;
    const std::string& host = range.list[2].list[0].text;
    const int64_t port = range.list[2].list[1].integer;
    if (port < 1 || port > 65535) continue;
    ranges[static_cast<int>(range.list[0].integer)] = {
        static_cast<int>(range.list[1].integer),
        {host.empty() ? place.first : host, static_cast<int>(port)}};
  }
  if (ranges.empty()) return absl::UnavailableError("Redis is no cluster, or has no slots yet");
  return ranges;
}

void RedisCluster::Learned(Ranges ranges) {
  std::vector<Pool> dropped;
  std::lock_guard<std::mutex> lock(mutex_);
  wrong_ = false;
  next_learn_ = Clock::now() + kLearnPause;
  if (slots_.Learn(std::move(ranges))) ++failovers_;
  const std::set<Place> places = slots_.Places();
  for (auto it = pools_.begin(); it != pools_.end();) {
    if (places.count(it->first) > 0) {
      ++it;
      continue;
    }
    dropped.push_back(std::move(it->second));
    it = pools_.erase(it);
  }
}

}  // namespace stowage
