// Runs jobs of ddp_process, all ranks of one at a time.
#ifndef STOWAGE_TESTS_CLIENT_AGENT_DDP_JOB_H_
#define STOWAGE_TESTS_CLIENT_AGENT_DDP_JOB_H_

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/process/child_process.h"
#include "tests/support/temporary_folder.h"

namespace stowage {

// What a rank said in one job: a line for each step, and how it ended.
struct RankOfJob {
  std::vector<std::string> steps;
  std::string counts;  // "<n> finished, <n> recomputed"; empty if it was ended by a signal
  std::string error;   // empty: none
  std::string ended;   // "ended", "failed", "signal <n>"; empty: it hangs
  std::string all;

  // The plan of a step, or "".
  std::string PlanOf(size_t step) const {
    if (step >= steps.size()) return "";
    const size_t begin = steps[step].find(": plan ") + 7;
    return steps[step].substr(begin, steps[step].find(" in buckets") - begin);
  }
};

// Processes of all ranks, which begin at once.
class DdpJobs {
 public:
  DdpJobs(int ranks, const std::vector<std::string>& jobs) : jobs_(jobs.size()) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<std::string> command = {DDP_PROCESS, place_.path(), std::to_string(rank),
                                          std::to_string(ranks)};
      command.insert(command.end(), jobs.begin(), jobs.end());
      started_.push_back(std::make_unique<testing::ChildProcess>(command));
    }
  }

  // By job, then by rank.
  std::vector<std::vector<RankOfJob>> Wait() {
    std::vector<std::vector<RankOfJob>> jobs(jobs_, std::vector<RankOfJob>(started_.size()));
    for (size_t rank = 0; rank < started_.size(); ++rank) {
      if (started_[rank]->Wait(std::chrono::seconds(250)) == -1) continue;
      Part(started_[rank]->ReadUntil("nothing says this"), rank, &jobs);
    }
    return jobs;
  }

 private:
  static bool Take(const std::string& begin, const std::string& line, std::string* rest) {
    if (line.compare(0, begin.size(), begin) != 0) return false;
    *rest = line.substr(begin.size());
    return true;
  }

  static void Part(const std::string& said, size_t rank,
                   std::vector<std::vector<RankOfJob>>* jobs) {
    size_t job = 0;
    for (size_t at = 0; at < said.size() && job < jobs->size();) {
      const size_t end = std::min(said.find('\n', at), said.size());
      const std::string line = said.substr(at, end - at);
      at = end + 1;
      RankOfJob& of = (*jobs)[job][rank];
      of.all += line + "\n";
      std::string rest;
      if (Take("step ", line, &rest)) of.steps.push_back(line);
      if (Take("rank " + std::to_string(rank) + ": ", line, &rest)) of.counts = rest;
      if (Take("error: ", line, &rest)) of.error = rest;
      if (Take("job " + std::to_string(job) + ": ", line, &rest)) {
        of.ended = rest;
        ++job;
      }
    }
  }

  const TemporaryFolder place_;
  const size_t jobs_;
  std::vector<std::unique_ptr<testing::ChildProcess>> started_;
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_AGENT_DDP_JOB_H_
