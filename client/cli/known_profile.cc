#include "client/cli/known_profile.h"

#include <utility>

#include "absl/flags/flag.h"
#include "client/cli/plan_flags.h"
#include "client/cli/profile_file.h"

namespace stowage {

absl::StatusOr<std::optional<Profile>> KnownProfileFromFlag() {
  const std::string path = absl::GetFlag(FLAGS_profile);
  if (path.empty()) return std::optional<Profile>();
  absl::StatusOr<Profile> profile = ReadProfile(path);
  if (!profile.ok()) return profile.status();
  return std::optional<Profile>(*std::move(profile));
}

absl::Status KnowOrProfile(Agent* agent, const Batch& batch, std::optional<Profile> known) {
  return known ? agent->UseProfile(batch, *std::move(known)) : agent->Profile(batch);
}

}  // namespace stowage
