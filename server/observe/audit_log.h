// Who got which plan, and who changed what: one JSON object per line.
//
// Lines are written by a thread of the log's own. Nothing waits for it: what the queue cannot hold is
// dropped and counted, and the next line says how many. Jobs make any number of lines, people few: so
// changes of cached plans have places in the queue that nothing else takes, and are in a second file,
// "<path>.changes", too, which other lines do not rotate away (rotating_file.h). Thread-safe.
#ifndef STOWAGE_SERVER_OBSERVE_AUDIT_LOG_H_
#define STOWAGE_SERVER_OBSERVE_AUDIT_LOG_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/observe/rotating_file.h"
#include "server/observe/server_metrics.h"
#include "solvers/model/canonical.h"
#include "solvers/model/units.h"

namespace stowage {

struct AuditEvent {
  const char* action =
      "";  // a constant: "hand_out", "pin", "roll_back", "delete", "report", "resolve", ...
  std::string request_id;
  std::string identity;  // who asked, as far as the server knows
  std::string tenant;
  std::string job;
  PlanKey key;
  Bytes budget;
  int64_t revision = 0;
  Digest plan_digest;   // ScheduleDigest; zeros where there is no plan
  std::string source;   // of a plan: "cache", "solved", "shared", "key"
  std::string outcome;  // of an action: "ok" or why not
  // Of a cached plan: by somebody who may, done or refused; by what jobs report; by a re-solve.
  bool change = false;
};

// What an event says came of an action: "ok", or code and message.
std::string LoggedOutcome(const absl::Status& status);

// One line, with its end and the time (server/observe/log_line.h). Fields that are empty are left out.
std::string ToJsonLine(const AuditEvent& event);

struct AuditOptions {
  std::string path;
  size_t most_bytes = size_t{64} << 20;  // of one file
  size_t queue_limit = 16384;            // lines; of changes as many again
  ServerMetrics* metrics = nullptr;      // told of lines that are dropped; outlives the log
};

class AuditLog {
 public:
  // Appends to the files. UNAVAILABLE when one cannot be opened.
  static absl::StatusOr<std::unique_ptr<AuditLog>> Open(const AuditOptions& options);
  // Writes what is queued.
  ~AuditLog();

  void Add(const AuditEvent& event);

  // Lines that were not written: the queue was full, or the file could not be written.
  int64_t dropped() const;

 private:
  struct Line {
    std::string text;
    bool change = false;
  };

  explicit AuditLog(const AuditOptions& options);
  absl::Status Start();
  void Run();
  // With the mutex not held.
  void Write(const std::deque<Line>& lines);
  void CountDroppedLocked(int64_t lines);

  const AuditOptions options_;
  RotatingFile file_;  // both of the thread alone
  RotatingFile changes_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Line> queue_;
  size_t queued_changes_ = 0;
  int64_t dropped_ = 0;
  int64_t told_ = 0;  // of the dropped ones, how many the file says
  bool stopped_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_OBSERVE_AUDIT_LOG_H_
