#include "solvers/transfer/internal/transfer_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace stowage {
namespace {

using Tensor = ComputeTrace::Tensor;

TransferModel Link(int64_t latency) {
  TransferModel link;
  link.to_host = link.to_device = {1000000000, Nanos(latency)};
  return link;
}

ComputeTrace RandomTrace(int tensors, std::mt19937_64* rng) {
  ComputeTrace trace;
  for (int i = 0; i < tensors; ++i) {
    Tensor tensor;
    tensor.stage = i + 1;
    tensor.bytes = Bytes(1 + static_cast<int64_t>((*rng)() % 9));
    tensor.made = tensor.last_read = i;
    tensor.next_read = tensors + static_cast<int>((*rng)() % 8);
    trace.tensors.push_back(tensor);
  }
  return trace;
}

bool Nested(const std::vector<Tensor>& tensors) {
  return std::is_sorted(tensors.begin(), tensors.end(),
                        [](const Tensor& a, const Tensor& b) { return a.next_read > b.next_read; });
}

int64_t Sum(const std::vector<Tensor>& tensors) {
  int64_t sum = 0;
  for (const Tensor& tensor : tensors) sum += tensor.bytes.value();
  return sum;
}

int64_t MostOfAllSubsets(const std::vector<Tensor>& tensors) {
  int64_t most = 0;
  for (size_t set = 0; set < size_t{1} << tensors.size(); ++set) {
    std::vector<Tensor> chosen;
    for (size_t i = 0; i < tensors.size(); ++i) {
      if ((set >> i & 1) != 0) chosen.push_back(tensors[i]);
    }
    if (Nested(chosen)) most = std::max(most, Sum(chosen));
  }
  return most;
}

TEST(NestedTrace, HasTheMostBytesThatAreNested) {
  std::mt19937_64 rng(1);
  int fewer = 0;
  for (int i = 0; i < 500; ++i) {
    const ComputeTrace trace = RandomTrace(i % 11, &rng);
    const ComputeTrace nested = NestedTrace(trace, Link(0));
    EXPECT_TRUE(Nested(nested.tensors));
    EXPECT_TRUE(
        std::is_sorted(nested.tensors.begin(), nested.tensors.end(),
                       [](const Tensor& a, const Tensor& b) { return a.last_read < b.last_read; }));
    ASSERT_EQ(Sum(nested.tensors), MostOfAllSubsets(trace.tensors));
    fewer += nested.tensors.size() < trace.tensors.size() ? 1 : 0;
  }
  EXPECT_GT(fewer, 300);
}

TEST(NestedTrace, LeavesOutWhatTakesMoreLatencyThanCopying) {
  ComputeTrace trace;
  for (const int64_t bytes : {9, 10, 11}) {
    Tensor tensor;
    tensor.bytes = Bytes(bytes);
    trace.tensors.push_back(tensor);
  }
  const ComputeTrace nested = NestedTrace(trace, Link(10));
  ASSERT_EQ(nested.tensors.size(), 2u);
  EXPECT_EQ(nested.tensors[0].bytes, Bytes(10));
}

}  // namespace
}  // namespace stowage
