#include "server/observe/audit_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/observe/log_line.h"

namespace stowage {
namespace {

void AddText(const char* name, const std::string& value, LogLine* line) {
  if (!value.empty()) line->Add(name, value);
}

void AddNumber(const char* name, int64_t value, LogLine* line) {
  if (value != 0) line->Add(name, value);
}

void AddDigest(const char* name, const Digest& digest, LogLine* line) {
  if (digest != Digest()) line->Add(name, digest.ToHex());
}

std::string DroppedLine(int64_t lines) {
  return LogLine(LogLevel::kWarning, "lines_dropped").Add("lines", lines).Text();
}

}  // namespace

std::string LoggedOutcome(const absl::Status& status) {
  return status.ok() ? "ok" : status.ToString(absl::StatusToStringMode::kWithNoExtraData);
}

std::string ToJsonLine(const AuditEvent& event) {
  LogLine line(LogLevel::kInfo, event.action);
  AddText("request_id", event.request_id, &line);
  AddText("identity", event.identity, &line);
  AddText("tenant", event.tenant, &line);
  AddText("job", event.job, &line);
  AddDigest("key", event.key.digest, &line);
  AddNumber("budget_bytes", event.budget.value(), &line);
  AddNumber("revision", event.revision, &line);
  AddDigest("plan_digest", event.plan_digest, &line);
  AddText("source", event.source, &line);
  AddText("outcome", event.outcome, &line);
  return line.Text();
}

absl::StatusOr<std::unique_ptr<AuditLog>> AuditLog::Open(const AuditOptions& options) {
  std::unique_ptr<AuditLog> log(new AuditLog(options));
  if (absl::Status started = log->Start(); !started.ok()) return started;
  return log;
}

AuditLog::AuditLog(const AuditOptions& options)
    : options_(options),
      file_(options.path, options.most_bytes),
      changes_(options.path + ".changes", options.most_bytes) {}

absl::Status AuditLog::Start() {
  for (RotatingFile* file : {&file_, &changes_}) {
    if (absl::Status opened = file->Open(); !opened.ok()) {
      return absl::UnavailableError(absl::StrCat("cannot open the audit log ", opened.message()));
    }
  }
  thread_ = std::thread([this] { Run(); });
  return absl::OkStatus();
}

AuditLog::~AuditLog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AuditLog::Add(const AuditEvent& event) {
  Line line{ToJsonLine(event), event.change};
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const size_t queued = event.change ? queued_changes_ : queue_.size() - queued_changes_;
    if (queued >= options_.queue_limit) {
      CountDroppedLocked(1);
      return;
    }
    queue_.push_back(std::move(line));
    if (event.change) ++queued_changes_;
  }
  wake_.notify_one();
}

int64_t AuditLog::dropped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return dropped_;
}

void AuditLog::CountDroppedLocked(int64_t lines) {
  dropped_ += lines;
  if (options_.metrics != nullptr) options_.metrics->LinesDropped(LineFile::kAudit, lines);
}

void AuditLog::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::deque<Line> lines;
    lines.swap(queue_);
    queued_changes_ = 0;
    if (dropped_ > told_) {
      lines.push_front({DroppedLine(dropped_ - told_)});
      told_ = dropped_;
    }
    lock.unlock();
    Write(lines);
    lock.lock();
  }
}

void AuditLog::Write(const std::deque<Line>& lines) {
  int64_t failed = 0;
  for (const Line& line : lines) {
    bool written = file_.Write(line.text);
    if (line.change) written = changes_.Write(line.text) && written;
    if (!written) ++failed;
  }
  const bool flushed = file_.Flush();
  if (!changes_.Flush() || !flushed) failed = static_cast<int64_t>(lines.size());
  if (failed == 0) return;
  std::lock_guard<std::mutex> lock(mutex_);
  CountDroppedLocked(failed);
}

}  // namespace stowage
