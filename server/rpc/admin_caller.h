// What handlers of administration have in common.
#ifndef STOWAGE_SERVER_RPC_ADMIN_CALLER_H_
#define STOWAGE_SERVER_RPC_ADMIN_CALLER_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/rpc/rpc_record.h"
#include "server/service/admin.h"
#include "solvers/model/field_error.h"

namespace stowage {

// Of a call by one who may make it; `stop` outlives what it is handed to.
inline AdminCaller CallerOf(const RpcRecord& record, const StopToken& stop) {
  const Caller& caller = *record.caller();
  return AdminCaller{record.id(), caller.identity, caller.tenant, !caller.scope(), &stop};
}

// Made by FieldError.
inline absl::Status AtLeast(const std::string& field, int64_t value, int64_t least) {
  if (value >= least) return absl::OkStatus();
  return FieldError(field, value, absl::StrCat("must be >= ", least));
}

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_ADMIN_CALLER_H_
