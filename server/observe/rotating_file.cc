#include "server/observe/rotating_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace stowage {

RotatingFile::~RotatingFile() {
  if (file_ != nullptr) std::fclose(file_);
}

absl::Status RotatingFile::Open() {
  file_ = std::fopen(path_.c_str(), "ae");
  if (file_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(path_, ": ", std::strerror(errno)));
  }
  std::fseek(file_, 0, SEEK_END);
  size_ = static_cast<size_t>(std::max(std::ftell(file_), 0L));
  return absl::OkStatus();
}

bool RotatingFile::Write(const std::string& line) {
  if (size_ > 0 && size_ + line.size() > most_bytes_) Rotate();
  if (file_ == nullptr && !Open().ok()) return false;
  const size_t written = std::fwrite(line.data(), 1, line.size(), file_);
  size_ += written;  // a full disk must not rotate what it holds away
  return written == line.size();
}

bool RotatingFile::Flush() { return file_ == nullptr || std::fflush(file_) == 0; }

void RotatingFile::Rotate() {
  if (file_ != nullptr) std::fclose(file_);
  file_ = nullptr;
  size_ = 0;
  std::rename(path_.c_str(), (path_ + ".1").c_str());
}

}  // namespace stowage
