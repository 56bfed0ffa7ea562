// A second account of a pipeline, written from what solvers/pipeline/pipeline.h says and as plainly as possible: which
// task a device runs next, when, and what each instruction of it holds. Knows neither the evaluator of schedules nor
// that of pipelines.
#ifndef STOWAGE_TESTS_SOLVERS_PIPELINE_NAIVE_PIPELINE_H_
#define STOWAGE_TESTS_SOLVERS_PIPELINE_NAIVE_PIPELINE_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "solvers/model/chain.h"
#include "solvers/pipeline/pipeline.h"

namespace stowage::testing {

// Runs the tasks of all devices in time. `run(task)` is told of each in the order in which its device runs them, and
// returns how long it takes. The makespan; -1 where the devices wait for each other for ever.
int64_t RunTasks(const PipelineShape& shape,
                 const std::function<int64_t(const PipelineTask&)>& run);

struct NaivePipeline {
  int64_t makespan = 0;
  std::vector<int64_t> peaks;  // by device
};

// Of a plan that was found, instruction by instruction.
NaivePipeline RunPlan(const Chain& chain, const PipelineShape& shape, const PipelinePlan& plan);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_PIPELINE_NAIVE_PIPELINE_H_
