#include "server/rpc/grpc_log.h"

#include <grpc/support/log.h>

#include <mutex>
#include <string>

namespace stowage {
namespace {

struct Target {
  std::mutex mutex;
  Log* log = nullptr;
};

// Never destroyed: gRPC's threads may outlive main.
Target& TheTarget() {
  static auto* const kTarget = new Target;
  return *kTarget;
}

LogLevel LevelOf(gpr_log_severity severity) {
  switch (severity) {
    case GPR_LOG_SEVERITY_DEBUG:
      return LogLevel::kDebug;
    case GPR_LOG_SEVERITY_INFO:
      return LogLevel::kInfo;
    case GPR_LOG_SEVERITY_ERROR:
      return LogLevel::kWarning;  // of a connection, seldom of the server
  }
  return LogLevel::kWarning;
}

void Take(gpr_log_func_args* said) {
  Target& target = TheTarget();
  std::lock_guard<std::mutex> lock(target.mutex);
  if (target.log == nullptr) return;
  target.log->Write(LevelOf(said->severity), "grpc",
                    [said](LogLine* line) { line->Add("text", std::string(said->message)); });
}

}  // namespace

GrpcLog::GrpcLog(Log* log) {
  Target& target = TheTarget();
  std::lock_guard<std::mutex> lock(target.mutex);
  target.log = log;
  gpr_set_log_function(Take);
}

GrpcLog::~GrpcLog() {
  gpr_set_log_function(nullptr);
  Target& target = TheTarget();
  std::lock_guard<std::mutex> lock(target.mutex);
  target.log = nullptr;
}

}  // namespace stowage
