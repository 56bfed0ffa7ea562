#ifndef STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_LINK_H_
#define STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_LINK_H_

#include <optional>

#include "absl/status/status.h"
#include "client/torch/offload/host_pool.h"
#include "solvers/model/transfer_model.h"
#include "solvers/model/units.h"

namespace stowage {

// A device's host memory, and what its copies cost, as far as that is known. Not thread-safe.
class HostLink {
 public:
  // As much host memory as the link has; without one `host_memory`. Takes none of it yet. The link, if there is one, is
  // valid.
  HostLink(const std::optional<TransferModel>& link, Bytes host_memory, HostPool::Source source);

  // As ExecutionDevice has them.
  const TransferModel* link() const { return link_ ? &*link_ : nullptr; }
  HostPool* host() { return pool_ ? &*pool_ : nullptr; }
  absl::Status SetLink(const TransferModel& link);

 private:
  std::optional<TransferModel> link_;
  std::optional<HostPool> pool_;
};

}  // namespace stowage

#endif  // STOWAGE_CLIENT_TORCH_OFFLOAD_HOST_LINK_H_
