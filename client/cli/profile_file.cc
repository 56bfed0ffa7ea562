#include "client/cli/profile_file.h"

#include "absl/flags/flag.h"
#include "client/cli/files.h"
#include "client/cli/plan_flags.h"
#include "proto/codec/codec.h"
#include "solvers/model/field_error.h"

namespace stowage {

absl::StatusOr<Profile> ReadProfile(const std::string& path) {
  absl::StatusOr<std::string> json = ReadFile(path);
  if (!json.ok()) return json.status();
  absl::StatusOr<v1::Profile> message = ProfileFromJson(*json);
  if (!message.ok()) return ErrorIn(path, message.status());
  absl::StatusOr<Profile> profile = FromProto(*message);
  if (!profile.ok()) return ErrorIn(path, profile.status());
  return profile;
}

absl::StatusOr<Profile> ProfileFromFlag() {
  const std::string path = absl::GetFlag(FLAGS_profile);
  if (path.empty()) return FieldError("--profile", "\"\"", "must name a profile file");
  return ReadProfile(path);
}

}  // namespace stowage
