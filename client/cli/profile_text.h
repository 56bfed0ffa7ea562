#ifndef STOWAGE_CLIENT_CLI_PROFILE_TEXT_H_
#define STOWAGE_CLIENT_CLI_PROFILE_TEXT_H_

#include <string>

#include "client/torch/profile/profile_report.h"
#include "solvers/model/problem.h"

namespace stowage {

// A table of stages, the loss last, or of vertices with medians and quartiles of their times and with their
// bytes; below it how the sum of the times compares with whole steps. The report is of this profile.
std::string ProfileText(const Profile& profile, const ProfileReport& report);

}  // namespace stowage

#endif  // STOWAGE_CLIENT_CLI_PROFILE_TEXT_H_
