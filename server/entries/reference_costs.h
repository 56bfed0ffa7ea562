// The costs that an entry's plans are judged by, made of what several jobs measured.
//
// Times of a step are the median over the jobs. Overheads are the largest but one, an upper
// quantile: plans that hold under them hold for most jobs. The link is the median, if most jobs have
// one. So whatever one job measures, each figure stays within the range of the others' figures.
//
// A job counts once, with its first profile, or with one that came when reports said that costs have
// moved; all jobs that do not say who they are count as one.
// Bytes, nanoseconds. Pure functions, hence thread-safe.
#ifndef STOWAGE_SERVER_ENTRIES_REFERENCE_COSTS_H_
#define STOWAGE_SERVER_ENTRIES_REFERENCE_COSTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "server/entries/plan_entry.h"
#include "server/entries/planning_problem.h"

namespace stowage {

// Jobs that must agree before the reference is anything but the first job's costs.
inline constexpr size_t kQuorum = 3;
inline constexpr size_t kMostSamples = 9;
// Of all samples of an entry, unless that is less than a quorum.
inline constexpr size_t kMostSampledSteps = 200000;

// Samples of an entry, and reports on a plan, that callers of that identity have at most, whatever names
// their jobs give themselves: fewer than a quorum once the entry has heard another identity, for which the
// plans are, too; else a quorum. Identity 0 is nobody's. O(samples + reports).
bool HasHeardOthers(const PlanEntry& entry, uint64_t identity);
size_t VoicesOf(const PlanEntry& entry, uint64_t identity);

// Of a job, by the name that it gives itself, of a caller of that identity ("" where callers are not
// known). 0 where there is neither.
uint64_t JobHash(const std::string& job, const std::string& identity = "");
// 0 for "": nothing is known, and nothing bounded.
uint64_t IdentityHash(const std::string& identity);

// Of those that have one `voice` and an identity the newest `most` stay.
template <class Sample, class Voice>
void BoundVoices(size_t most, const Voice& voice, std::vector<Sample>* samples) {
  std::map<std::decay_t<decltype(voice(samples->front()))>, size_t> heard;
  std::vector<Sample> kept;
  std::copy_if(
      samples->rbegin(), samples->rend(), std::back_inserter(kept),
      [&](const Sample& sample) { return sample.identity == 0 || ++heard[voice(sample)] <= most; });
  samples->assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

// Samples that an entry for the problem keeps.
size_t SampleLimit(const Problem& problem);

// While a fresh profile is wanted (reports.h), whoever comes next is heard, and again.
enum class SampleVerdict {
  kNew,  // tells something that the entry does not know
  kKnown,  // the job has one, its identity as many as it may, or these are the reference; or the entry
           // is full: then one new job in eight is heard
  kOutlier,   // over four times what the others take in all, or under a quarter
  kUnusable,  // the entry is frozen or of another network, or the profile has no times
};

// Cheap: O(samples).
SampleVerdict JudgeSample(const PlanEntry& entry, const Instance& costs, uint64_t job,
                          uint64_t identity = 0);

// What the samples agree on; nothing while fewer than a quorum of jobs do. Samples whose total time is
// over four times the median's, or under a quarter, do not agree. The structure of all is equal.
// O(samples x steps).
std::optional<Instance> ReferenceOf(const std::vector<CostSample>& samples);

// Whether `next` is far enough from `now` to judge all plans anew: times or link by over 2%, or any
// overhead.
bool MovesFrom(const Instance& now, const Instance& next);

}  // namespace stowage

#endif  // STOWAGE_SERVER_ENTRIES_REFERENCE_COSTS_H_
