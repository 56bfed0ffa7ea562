// The names that things have in Redis.
//
//   stowage:v1:plan:<encoding version>:<digest in hex>             hash: g generation, v sealed entry, t tenant
//   stowage:v1:of:<tenant>, stowage:v1:all                         index of the plans of one tenant, of all
//   stowage:v1:gone:<encoding version>:<digest in hex>             an Erase, remembered for a while
//   stowage:v1:lease:<encoding version>:<digest in hex>:<budget>   the token of who solves it
//   stowage:v1:steps:<version>:<digest>:<budget>:<revision>:<job>  most steps that the job reported on the plan
//   stowage:decided:v1:key:<encoding version>:<digest in hex>      hash: what was decided about it
//   stowage:decided:v1:told:<server>                               the server's mark
//
// An index is a sorted set of score 0 with a member <encoding version in 10 digits>:<digest in hex> for
// each plan, in the order of keys, and one more, "!", before them: with it the index lacks none. Members
// that begin with "#" are of walks that make it.
//
// In a cluster, {x} follows v1, x being the first digit of the digest: all that a call names about one plan, and
// the indexes of the plans of that digit, are on one server then, so that scripts stay whole. So there are
// sixteen of each index and of each mark, and data for sixteen servers at most.
//
// Servers with keys of their own (entry_keys.h) have v1m for v1, and share nothing with those without: neither takes
// the other's entries for damaged.
//
// "stowage" may be another prefix; v1 is the entries' format version, so that servers of two
// formats share a Redis without reading, or replacing, each other's entries. Decisions have a version of
// their own in each record (server/decisions): no format of entries may lose them.
#ifndef STOWAGE_SERVER_STORE_REDIS_KEYS_H_
#define STOWAGE_SERVER_STORE_REDIS_KEYS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "solvers/model/canonical.h"
#include "solvers/model/units.h"

namespace stowage {

class RedisKeys {
 public:
  // `prefix` is of letters, digits, '_', '-', '.' and ':' (see IsRedisPrefix).
  // `keyed`: of servers that seal under a key.
  // `tagged`: in a cluster.
  explicit RedisKeys(const std::string& prefix, bool keyed = false, bool tagged = false);

  // Parts that plans, indexes and marks come in, from 0 on.
  int parts() const { return tagged_ ? 16 : 1; }
  int PartOf(const PlanKey& key) const;

  std::string Plan(const PlanKey& key) const;
  std::string Gone(const PlanKey& key) const;
  // No budget: all of them at once.
  std::string Lease(const PlanKey& key, const std::optional<Bytes>& budget) const;

  std::string Steps(const PlanKey& key, Bytes budget, int64_t revision, uint64_t job) const;

  // The index of that tenant's plans of a part, or of all plans of it.
  std::string Index(const std::optional<std::string>& tenant, int part = 0) const;
  // What a plan is called in an index; its order is that of keys from version 0 on.
  static std::string Member(const PlanKey& key);
  // The key of such a member; nothing when it is something else.
  static std::optional<PlanKey> ParseMember(const std::string& member);
  // What the names of plans of a part begin with: <encoding version>:<digest in hex> follows.
  std::string PlanPrefix(int part = 0) const;
  std::string Decisions(const PlanKey& key) const;
  // For SCAN, and back, as PlanPattern and ParsePlan.
  std::string DecisionsPattern(int part = 0) const;
  std::optional<PlanKey> ParseDecisions(const std::string& name) const;
  std::string DecisionMark(const std::string& server, int part = 0) const;

  // For SCAN: matches the names of all plans of a part, and perhaps others.
  std::string PlanPattern(int part = 0) const;
  // The key whose plan has this name; nothing when it is the name of something else.
  std::optional<PlanKey> ParsePlan(const std::string& name) const;

 private:
  std::string Base(int part) const;
  std::string Decided(int part) const;
  std::string Tag(int part) const;

  std::string base_;
  std::string decided_;
  bool tagged_;
};

// Whether it may be a prefix: 1..64 characters, none of which means anything in a pattern.
bool IsRedisPrefix(const std::string& prefix);

}  // namespace stowage

#endif  // STOWAGE_SERVER_STORE_REDIS_KEYS_H_
