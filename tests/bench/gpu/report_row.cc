#include "tests/bench/gpu/report_row.h"

#include <cmath>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace stowage {
namespace {

constexpr char kStart[] = "{\"row\": ";

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return quoted + '"';
}

}  // namespace

ReportRow::ReportRow(const std::string& id) : id_(id), fields_(kStart + Quoted(id)) {}

ReportRow& ReportRow::Add(const std::string& name, const std::string& value) {
  absl::StrAppend(&fields_, ", ", Quoted(name), ": ", Quoted(value));
  return *this;
}

ReportRow& ReportRow::Add(const std::string& name, int64_t value) {
  absl::StrAppend(&fields_, ", ", Quoted(name), ": ", value);
  return *this;
}

ReportRow& ReportRow::Add(const std::string& name, double value) {
  absl::StrAppend(&fields_, ", ", Quoted(name), ": ",
                  std::isfinite(value) ? absl::StrFormat("%.6g", value) : "null");
  return *this;
}

ReportRow& ReportRow::Add(const std::string& name, bool value) {
  absl::StrAppend(&fields_, ", ", Quoted(name), ": ", value ? "true" : "false");
  return *this;
}

absl::StatusOr<ReportFile> ReportFile::Open(const std::string& path) {
  ReportFile file(path);
  std::ifstream in(path);
  bool cut_off = false;
  for (std::string line; std::getline(in, line);) {
    cut_off = in.eof();
    const size_t start = std::string(kStart).size() + 1;
    const size_t end = line.find('"', start);
    const bool whole = end != std::string::npos && line.back() == '}';
    if (!whole || line.find("\"error\": ") != std::string::npos) continue;
    file.ids_.insert(line.substr(start, end - start));
  }
  std::ofstream out(path, std::ios::app);
  if (cut_off) out << '\n';
  if (out) return file;
  return absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::Status ReportFile::Append(const ReportRow& row) {
  std::ofstream out(path_, std::ios::app);
  out << row.Json() << std::endl;
  if (!out) return absl::UnavailableError(absl::StrCat("cannot write ", path_));
  ids_.insert(row.id());
  return absl::OkStatus();
}

absl::Status ReportFile::AppendError(const std::string& id, const absl::Status& error) {
  ++errors_;
  const std::string message(error.message());
  return Append(ReportRow(id).Add("error", message.substr(0, message.find('\n'))));
}

}  // namespace stowage
