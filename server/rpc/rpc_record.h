// One call from its start to its status: who makes it, its id, what is counted and logged of it.
#ifndef STOWAGE_SERVER_RPC_RPC_RECORD_H_
#define STOWAGE_SERVER_RPC_RPC_RECORD_H_

#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth/authenticator.h"
#include "server/auth/identity.h"
#include "server/observe/audit_log.h"
#include "server/observe/log.h"
#include "server/observe/server_metrics.h"
#include "server/rpc/request_id.h"
#include "server/service/counted_steps.h"
#include "solvers/base/tracer.h"
#include "solvers/model/canonical.h"

namespace stowage {

// What every call is held against and told to. All outlive the server.
struct RpcMonitor {
  ServerMetrics* metrics = nullptr;
  Log* log = nullptr;                            // null: nothing is logged
  const Authenticator* authenticator = nullptr;  // null: everyone may do everything
  AuditLog* audit = nullptr;                     // null: there is none
  ReportedSteps* reported_steps = nullptr;       // null: no other server shares the plans
  Tracer* tracer = nullptr;                      // null: no call is traced
  double trace_share = 0;  // of calls without a traceparent, those that begin a trace
};

class RpcRecord {
 public:
  // Started. Its id is in the trailing metadata that `context` sends where the caller has named it, or the call fails: a header that
  // is another one each time costs a hit a tenth of its time.
  RpcRecord(Rpc rpc, grpc::CallbackServerContext* context, const RpcMonitor& monitor);

  // Who calls, if they may; else UNAUTHENTICATED or PERMISSION_DENIED, which is the call's answer.
  // No handler looks at a request before this.
  const absl::StatusOr<Caller>& caller() const { return caller_; }

  // The caller's, or a new one.
  std::string id() const { return id_.text(); }

  // For spans below the call's; of no trace where it is not sampled.
  TraceScope trace() const {
    return span_ ? TraceScope{monitor_.tracer, span_->context()} : TraceScope();
  }

  // Adds what `fill` makes of an event of this call, if there is an audit log.
  template <class Fill>
  void Audit(Fill fill) const {
    if (monitor_.audit == nullptr || !caller_.ok()) return;
    AuditEvent event;
    event.request_id = id_.text();
    event.identity = caller_->identity;
    event.tenant = caller_->tenant;
    fill(&event);
    monitor_.audit->Add(event);
  }

  // For the log: which key answered or was asked for, and where the plan came from.
  void SetKey(const PlanKey& key) { key_ = key; }
  void SetSource(const char* source) { source_ = source; }

  // What the caller is told, counted and logged; of a share that is taken, whose it is. Call it once, before
  // gRPC is told that the call is finished.
  grpc::Status Handled(const absl::Status& status) const;

 private:
  std::string KeyPrefix() const;
  void LogCall(const grpc::Status& status, double seconds) const;
  void EndSpan(const grpc::Status& status) const;

  Rpc rpc_;
  RpcMonitor monitor_;
  // gRPC's: there until Handled at least.
  grpc::CallbackServerContext* context_;
  std::chrono::steady_clock::time_point start_;
  RequestId id_;
  absl::StatusOr<Caller> caller_;
  std::optional<PlanKey> key_;
  const char* source_ = "";
  std::shared_ptr<Span> span_;  // of all copies; null where the call is not traced
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_RPC_RECORD_H_
