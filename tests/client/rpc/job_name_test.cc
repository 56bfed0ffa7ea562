#include "client/rpc/job_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace stowage {
namespace {

// The environment without anything that names a job, until the test ends.
class JobNameTest : public testing::Test {
 protected:
  void SetUp() override { Clear(); }
  void TearDown() override { Clear(); }
  static void Clear() {
    for (const char* name :
         {"STOWAGE_JOB", "SLURM_JOB_ID", "SLURM_STEP_ID", "PBS_JOBID", "LSB_JOBID", "LSB_JOBINDEX",
          "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
      unsetenv(name);
    }
  }
};

// Ranks differ in host, process and step, and in nothing that is looked at.
TEST_F(JobNameTest, IsOneForAllRanksOfALaunchersJob) {
  const std::vector<std::array<std::string, 3>> least_first = {
      {"OMPI_MCA_ess_base_jobid", "99", "openmpi:99"},
      {"PMIX_NAMESPACE", "prterun-a-7@1", "pmix:prterun-a-7@1"},
      {"TORCHELASTIC_RUN_ID", "bert", "torchelastic:bert"},
      {"LSB_JOBID", "12", "lsf:12"},
      {"LSB_JOBINDEX", "3", "lsf:12.3"},
      {"PBS_JOBID", "8[1].head", "pbs:8[1].head"},
      {"SLURM_JOB_ID", "4711", "slurm:4711"},
      {"SLURM_STEP_ID", "2", "slurm:4711"},
      {"STOWAGE_JOB", "mine", "mine"}};
  for (const auto& [name, value, job] : least_first) {
    setenv(name.c_str(), value.c_str(), 1);
    EXPECT_EQ(JobName(), job);
  }
  Clear();
  // What torchrun says without an id is the same for all jobs.
  setenv("TORCHELASTIC_RUN_ID", "none", 1);
  EXPECT_THAT(JobName(), testing::EndsWith(":" + std::to_string(getpid())));
}

TEST_F(JobNameTest, IsTheUsersOrTellsProcessesApart) {
  EXPECT_THAT(JobName(), testing::EndsWith(":" + std::to_string(getpid())));
  EXPECT_LE(JobName().size(), 128u);
  setenv("STOWAGE_JOB", "bert-7", 1);
  EXPECT_EQ(JobName(), "bert-7");
  setenv("STOWAGE_JOB", std::string(500, 'x').c_str(), 1);
  EXPECT_EQ(JobName(), std::string(128, 'x'));
}

}  // namespace
}  // namespace stowage
