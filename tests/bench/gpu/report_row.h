// Rows of a report, a JSON object each, appended to a file as soon as they are measured: a report that is cut off is good for what
// it has, and goes on from there.
#ifndef STOWAGE_TESTS_BENCH_GPU_REPORT_ROW_H_
#define STOWAGE_TESTS_BENCH_GPU_REPORT_ROW_H_

#include <cstdint>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "solvers/model/units.h"

namespace stowage {

class ReportRow {
 public:
  // The id is of one row alone: "resnet50/recompute/60%".
  explicit ReportRow(const std::string& id);

  ReportRow& Add(const std::string& name, const std::string& value);
  ReportRow& Add(const std::string& name, const char* value) {
    return Add(name, std::string(value));
  }
  ReportRow& Add(const std::string& name, int64_t value);
  ReportRow& Add(const std::string& name, double value);
  ReportRow& Add(const std::string& name, bool value);
  // "_bytes" and "_ns" are added to the name.
  ReportRow& Add(const std::string& name, Bytes value) {
    return Add(name + "_bytes", value.value());
  }
  ReportRow& Add(const std::string& name, Nanos value) { return Add(name + "_ns", value.value()); }

  const std::string& id() const { return id_; }
  // One line.
  std::string Json() const { return fields_ + "}"; }

 private:
  const std::string id_;
  std::string fields_;
};

// Not thread-safe.
class ReportFile {
 public:
  // Reads the ids of the rows that are there, those that failed aside. UNAVAILABLE if the file cannot be written.
  static absl::StatusOr<ReportFile> Open(const std::string& path);

  bool Has(const std::string& id) const { return ids_.count(id) > 0; }
  absl::Status Append(const ReportRow& row);
  // What went wrong in place of the row.
  absl::Status AppendError(const std::string& id, const absl::Status& error);
  int errors() const { return errors_; }

 private:
  explicit ReportFile(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::set<std::string> ids_;
  int errors_ = 0;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_GPU_REPORT_ROW_H_
