#include "server/rpc/rpc_record.h"

namespace stowage {

RpcRecord::RpcRecord(Rpc rpc, ServerMetrics* metrics)
    : rpc_(rpc), metrics_(metrics), start_(std::chrono::steady_clock::now()) {
  metrics_->RpcStarted(rpc);
}

grpc::Status RpcRecord::Handled(grpc::Status status) const {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start_;
  metrics_->RpcHandled(rpc_, static_cast<int>(status.error_code()), took.count());
  return status;
}

}  // namespace stowage
