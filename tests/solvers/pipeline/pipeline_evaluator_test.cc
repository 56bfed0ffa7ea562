// Order, makespan and peaks of pipelines against a second account, closed forms and a recurrence of phases.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "solvers/model/field_error.h"
#include "solvers/pipeline/pipeline.h"
#include "tests/solvers/pipeline/naive_pipeline.h"

namespace stowage::testing {
namespace {

std::string Text(const PipelineShape& shape) {
  return std::to_string(shape.devices) + " devices, " + std::to_string(shape.chunks) + " chunks, " +
         std::to_string(shape.microbatches) + " microbatches";
}

std::vector<PipelineShape> Shapes() {
  std::vector<PipelineShape> shapes;
  for (int devices = 1; devices <= 4; ++devices) {
    for (int microbatches = 1; microbatches <= 9; ++microbatches) {
      shapes.push_back({devices, 1, microbatches, Nanos(0)});
    }
    for (int chunks = 2; chunks <= 3; ++chunks) {
      for (int groups = 1; groups <= 3; ++groups) {
        shapes.push_back({devices, chunks, groups * devices, Nanos(0)});
      }
    }
  }
  return shapes;
}

std::vector<Nanos> RandomTimes(int count, std::mt19937_64* rng) {
  std::uniform_int_distribution<int64_t> time(0, 9);
  std::vector<Nanos> times;
  for (int i = 0; i < count; ++i) times.emplace_back(time(*rng));
  return times;
}

TEST(PipelineOrder, RunsEachTaskOnceOnItsDevice) {
  for (const PipelineShape& shape : Shapes()) {
    const PipelineEvaluator pipeline(shape);
    ASSERT_EQ(pipeline.order().size(), static_cast<size_t>(shape.devices));
    std::vector<int> runs(2 * static_cast<size_t>(shape.stages() * shape.microbatches), 0);
    for (int d = 0; d < shape.devices; ++d) {
      for (const PipelineTask& task : pipeline.order()[static_cast<size_t>(d)]) {
        ASSERT_EQ(shape.DeviceOf(task.stage), d);
        ++runs[static_cast<size_t>(2 * (task.stage * shape.microbatches + task.microbatch) +
                                   (task.forward ? 0 : 1))];
      }
    }
    EXPECT_EQ(std::count(runs.begin(), runs.end(), 1), static_cast<int64_t>(runs.size()))
        << Text(shape);
  }
}

// Narayanan et al. 2021: of equal stages, (D - 1) (F + B) are lost, with interleaving (D - 1) (F + B) of a chunk.
TEST(PipelineMakespan, OfEqualStagesIsTheClosedForm) {
  for (const PipelineShape& shape : Shapes()) {
    if (shape.microbatches < shape.devices) continue;
    const std::vector<Nanos> forward(static_cast<size_t>(shape.stages()), Nanos(3));
    const std::vector<Nanos> backward(forward.size(), Nanos(7));
    EXPECT_EQ(PipelineEvaluator(shape).Makespan(forward, backward).value(),
              (shape.microbatches * shape.chunks + shape.devices - 1) * 10)
        << Text(shape);
  }
}

TEST(PipelineMakespan, EqualsTheSecondAccount) {
  std::mt19937_64 rng(11);
  for (PipelineShape shape : Shapes()) {
    for (int i = 0; i < 20; ++i) {
      shape.transfer_time = Nanos(i % 3);
      const std::vector<Nanos> forward = RandomTimes(shape.stages(), &rng);
      const std::vector<Nanos> backward = RandomTimes(shape.stages(), &rng);
      const int64_t naive = RunTasks(shape, [&](const PipelineTask& task) {
        return (task.forward ? forward : backward)[static_cast<size_t>(task.stage)].value();
      });
      EXPECT_EQ(PipelineEvaluator(shape).Makespan(forward, backward).value(), naive) << Text(shape);
    }
  }
}

// Our own (algorithms.md), to compare with: warm-up W, cool-down E and the slowest stage S of 1F1B, from the last stage
// to the first, make W + E + (n - p) S.
int64_t ByPhases(const std::vector<Nanos>& forward, const std::vector<Nanos>& backward,
                 int64_t microbatches) {
  const int64_t stages = static_cast<int64_t>(forward.size());
  int64_t warm_up = 0, cool_down = 0, slowest = 0;
  for (int64_t s = stages - 1; s >= 0; --s) {
    const int64_t f = forward[static_cast<size_t>(s)].value();
    const int64_t b = backward[static_cast<size_t>(s)].value();
    const int64_t behind = stages - 1 - s;
    if (behind == 0) {
      warm_up = f;
      cool_down = b;
    } else {
      const int64_t next_f = forward[static_cast<size_t>(s + 1)].value();
      const int64_t next_b = backward[static_cast<size_t>(s + 1)].value();
      warm_up = f + std::max(warm_up + next_b, behind * f);
      cool_down = b + std::max(cool_down + next_f, behind * b);
    }
    slowest = std::max(slowest, f + b);
  }
  return warm_up + cool_down + (microbatches - stages) * slowest;
}

TEST(PipelineMakespan, AgreesWithTheRecurrenceOfPhases) {
  std::mt19937_64 rng(12);
  int equal = 0, all = 0;
  for (int i = 0; i < 2000; ++i) {
    const int stages = 1 + i % 5;
    const PipelineShape shape = {stages, 1, stages + i % 7, Nanos(0)};
    const PipelineEvaluator pipeline(shape);
    // Of stages that are alike both are exact.
    const std::vector<Nanos> f(static_cast<size_t>(stages), RandomTimes(1, &rng)[0]);
    const std::vector<Nanos> b(static_cast<size_t>(stages), RandomTimes(1, &rng)[0]);
    ASSERT_EQ(pipeline.Makespan(f, b).value(), ByPhases(f, b, shape.microbatches));
    // Of others the recurrence knows of fewer waits.
    const std::vector<Nanos> forward = RandomTimes(stages, &rng);
    const std::vector<Nanos> backward = RandomTimes(stages, &rng);
    const int64_t makespan = pipeline.Makespan(forward, backward).value();
    const int64_t phases = ByPhases(forward, backward, shape.microbatches);
    EXPECT_GE(makespan, phases) << Text(shape);
    equal += makespan == phases ? 1 : 0;
    ++all;
  }
  EXPECT_GT(equal, all / 4) << equal;
}

TEST(PipelinePeak, EqualsTheSecondAccount) {
  std::mt19937_64 rng(13);
  std::uniform_int_distribution<int64_t> size(0, 9);
  for (const PipelineShape& shape : Shapes()) {
    std::vector<PipelineStageCosts> costs;
    for (int s = 0; s < shape.stages(); ++s) {
      PipelineStageCosts cost;
      cost.stash = Bytes(size(rng));
      cost.forward_peak = cost.stash + Bytes(size(rng));
      cost.backward_peak = cost.stash + Bytes(size(rng));
      costs.push_back(cost);
    }
    std::vector<int64_t> held(static_cast<size_t>(shape.devices), 0), peaks = held;
    RunTasks(shape, [&](const PipelineTask& task) {
      const PipelineStageCosts& cost = costs[static_cast<size_t>(task.stage)];
      const size_t d = static_cast<size_t>(task.stage % shape.devices);
      if (!task.forward) held[d] -= cost.stash.value();
      const Bytes peak = task.forward ? cost.forward_peak : cost.backward_peak;
      peaks[d] = std::max(peaks[d], held[d] + peak.value());
      if (task.forward) held[d] += cost.stash.value();
      return 1;
    });
    for (int d = 0; d < shape.devices; ++d) {
      EXPECT_EQ(PipelineEvaluator(shape).Peak(d, costs).value(), peaks[static_cast<size_t>(d)])
          << Text(shape) << ", device " << d;
    }
  }
}

TEST(PipelineShape, IsChecked) {
  const auto field = [](const PipelineShape& shape) {
    const auto violation = GetFieldViolation(CheckPipelineShape(shape));
    return violation ? violation->field : std::string();
  };
  EXPECT_EQ(field({4, 1, 3, Nanos(0)}), "");
  EXPECT_EQ(field({4, 2, 8, Nanos(5)}), "");
  EXPECT_EQ(field({0, 1, 1, Nanos(0)}), "devices");
  EXPECT_EQ(field({1025, 1, 1, Nanos(0)}), "devices");
  EXPECT_EQ(field({1, 0, 1, Nanos(0)}), "chunks");
  EXPECT_EQ(field({1, 65, 1, Nanos(0)}), "chunks");
  EXPECT_EQ(field({1, 1, 0, Nanos(0)}), "microbatches");
  EXPECT_EQ(field({1, 1, 65537, Nanos(0)}), "microbatches");
  EXPECT_EQ(field({1024, 1, 1024, Nanos(0)}), "microbatches");
  EXPECT_EQ(field({4, 2, 6, Nanos(0)}), "microbatches");
  EXPECT_EQ(field({2, 1, 1, Nanos(-1)}), "transfer_time_ns");
}

}  // namespace
}  // namespace stowage::testing
