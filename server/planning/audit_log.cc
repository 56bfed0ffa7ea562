#include "server/planning/audit_log.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/log/log_line.h"

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

// At the end of the file; its size so far in *size.
std::FILE* OpenFile(const std::string& path, size_t* size) {
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (file == nullptr) return nullptr;
  std::fseek(file, 0, SEEK_END);
  *size = static_cast<size_t>(std::max(std::ftell(file), 0L));
  return file;
}

}  // namespace

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
  size_t size = 0;
  std::FILE* file = OpenFile(options.path, &size);
  if (file == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot open the audit log ", options.path, ": ", std::strerror(errno)));
  }
  return std::unique_ptr<AuditLog>(new AuditLog(options, file, size));
}

AuditLog::AuditLog(const AuditOptions& options, std::FILE* file, size_t size)
    : options_(options), file_(file), size_(size) {
  thread_ = std::thread([this] { Run(); });
}

AuditLog::~AuditLog() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  thread_.join();
  if (file_ != nullptr) std::fclose(file_);
}

void AuditLog::Add(const AuditEvent& event) {
  std::string line = ToJsonLine(event);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (queue_.size() >= options_.queue_limit) {
      ++dropped_;
      return;
    }
    queue_.push_back(std::move(line));
  }
  wake_.notify_one();
}

int64_t AuditLog::dropped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return dropped_;
}

void AuditLog::CountDropped(int64_t lines) {
  std::lock_guard<std::mutex> lock(mutex_);
  dropped_ += lines;
}

void AuditLog::Run() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
    if (queue_.empty()) return;
    std::deque<std::string> lines;
    lines.swap(queue_);
    if (dropped_ > told_) {
      lines.push_front(DroppedLine(dropped_ - told_));
      told_ = dropped_;
    }
    lock.unlock();
    Write(lines);
    lock.lock();
  }
}

void AuditLog::Write(const std::deque<std::string>& lines) {
  int64_t failed = 0;
  for (const std::string& line : lines) {
    if (!WriteLine(line)) ++failed;
  }
  if (file_ != nullptr && std::fflush(file_) != 0) failed = static_cast<int64_t>(lines.size());
  if (failed > 0) CountDropped(failed);
}

bool AuditLog::WriteLine(const std::string& line) {
  if (size_ > 0 && size_ + line.size() > options_.most_bytes) Rotate();
  if (file_ == nullptr) file_ = OpenFile(options_.path, &size_);
  if (file_ == nullptr) return false;
  const size_t written = std::fwrite(line.data(), 1, line.size(), file_);
  size_ += written;  // a full disk must not rotate what it holds away
  return written == line.size();
}

void AuditLog::Rotate() {
  if (file_ != nullptr) std::fclose(file_);
  file_ = nullptr;
  size_ = 0;
  std::rename(options_.path.c_str(), (options_.path + ".1").c_str());
}

}  // namespace stowage
