// Writes the files of a report.
#ifndef STOWAGE_TESTS_BENCH_TEXT_FILE_H_
#define STOWAGE_TESTS_BENCH_TEXT_FILE_H_

#include <filesystem>
#include <string>

#include "absl/status/status.h"

namespace stowage {

// Makes the directories above it if need be. UNAVAILABLE if the file cannot be written.
absl::Status WriteTextFile(const std::filesystem::path& path, const std::string& text);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_TEXT_FILE_H_
