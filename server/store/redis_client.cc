#include "server/store/redis_client.h"

#include "server/store/redis_cluster.h"
#include "server/store/redis_pool.h"

namespace stowage {

std::shared_ptr<RedisClient> MakeRedisClient(const RedisOptions& options) {
  if (options.address.nodes.empty()) return std::make_shared<RedisPool>(options);
  return std::make_shared<RedisCluster>(options);
}

}  // namespace stowage
