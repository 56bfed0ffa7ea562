#include "server/rpc/library_log.h"

#include <google/protobuf/stubs/logging.h>
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

void Write(LogLevel level, const char* event, const std::string& text) {
  Target& target = TheTarget();
  std::lock_guard<std::mutex> lock(target.mutex);
  if (target.log == nullptr) return;
  target.log->Write(level, event, [&text](LogLine* line) { line->Add("text", text); });
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

LogLevel LevelOf(google::protobuf::LogLevel level) {
  switch (level) {
    case google::protobuf::LOGLEVEL_INFO:
      return LogLevel::kInfo;
    case google::protobuf::LOGLEVEL_WARNING:
    case google::protobuf::LOGLEVEL_ERROR:
      return LogLevel::kWarning;  // of a message, seldom of the server
    case google::protobuf::LOGLEVEL_FATAL:
      return LogLevel::kError;
  }
  return LogLevel::kWarning;
}

void TakeGrpc(gpr_log_func_args* said) { Write(LevelOf(said->severity), "grpc", said->message); }

void TakeProtobuf(google::protobuf::LogLevel level, const char*, int, const std::string& said) {
  Write(LevelOf(level), "protobuf", said);
}

void SetTarget(Log* log) {
  Target& target = TheTarget();
  std::lock_guard<std::mutex> lock(target.mutex);
  target.log = log;
}

}  // namespace

LibraryLog::LibraryLog(Log* log) {
  SetTarget(log);
  gpr_set_log_function(TakeGrpc);
  google::protobuf::SetLogHandler(TakeProtobuf);
}

LibraryLog::~LibraryLog() {
  gpr_set_log_function(nullptr);
  SetTarget(nullptr);
}

}  // namespace stowage
