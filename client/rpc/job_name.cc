#include "client/rpc/job_name.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace stowage {
namespace {

constexpr size_t kLimit = 128;

// Who starts jobs, and where they say which: `part`, if there is one, tells the elements of an array apart, which
// have one id.
struct Launcher {
  const char* kind;
  const char* id;
  const char* part;
};

// Schedulers come before what they start.
constexpr Launcher kLaunchers[] = {
    {"slurm", "SLURM_JOB_ID", nullptr},   {"pbs", "PBS_JOBID", nullptr},
    {"lsf", "LSB_JOBID", "LSB_JOBINDEX"}, {"torchelastic", "TORCHELASTIC_RUN_ID", nullptr},
    {"pmix", "PMIX_NAMESPACE", nullptr},  {"openmpi", "OMPI_MCA_ess_base_jobid", nullptr}};

// Empty where it is not set; "none" is what torchrun calls a run that was given no id.
std::string Environment(const char* name) {
  const char* const value = name != nullptr ? std::getenv(name) : nullptr;
  const std::string text = value != nullptr ? value : "";
  return text == "none" ? "" : text;
}

std::string LaunchersName() {
  for (const Launcher& launcher : kLaunchers) {
    const std::string id = Environment(launcher.id), part = Environment(launcher.part);
    if (!id.empty()) return absl::StrCat(launcher.kind, ":", id, part.empty() ? "" : ".", part);
  }
  return "";
}

std::string ProcessName() {
  std::string host(kLimit, '\0');
  // A name that is cut is not terminated: the last byte stays 0.
  if (gethostname(host.data(), host.size() - 1) != 0) host = "unknown";
  const std::string pid = absl::StrCat(":", getpid());
  return std::string(host.c_str()).substr(0, kLimit - pid.size()) + pid;
}

}  // namespace

std::string JobName() {
  for (const std::string& name : {Environment("STOWAGE_JOB"), LaunchersName()}) {
    if (!name.empty()) return name.substr(0, kLimit);
  }
  return ProcessName();
}

}  // namespace stowage
