#include "client/torch/offload/host_link.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace stowage {

HostLink::HostLink(const std::optional<TransferModel>& link, Bytes host_memory,
                   HostPool::Source source)
    : link_(link) {
  const Bytes limit = link_ ? link_->host_memory : host_memory;
  if (link_ || limit > Bytes(0)) pool_.emplace(limit, Bytes(0), std::move(source));
}

absl::Status HostLink::SetLink(const TransferModel& link) {
  absl::Status status = ValidateTransferModel(link);
  if (!status.ok()) return status;
  const Bytes limit = pool_ ? pool_->limit() : Bytes(0);
  if (link.host_memory > limit) {
    return absl::InvalidArgumentError(absl::StrCat("host_memory is ", ToString(link.host_memory),
                                                   ", must be at most ", ToString(limit),
                                                   ": so much has the device for copies"));
  }
  link_ = link;
  return absl::OkStatus();
}

}  // namespace stowage
