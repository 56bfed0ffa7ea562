#include "solvers/graph/joint/nested_trace.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

namespace stowage {
namespace {

using Tensor = ComputeTrace::Tensor;

bool MostlyLatency(const Tensor& tensor, const TransferModel& link) {
  double latency = 0, copies = 0;  // sums of the longest times are no times
  for (const CopyCost& cost : {link.to_host, link.to_device}) {
    latency += static_cast<double>(cost.latency.value());
    copies += static_cast<double>(CopyTime(cost, tensor.bytes).value());
  }
  return copies < 2 * latency;
}

// Ends of sequences whose tensors are read again in the opposite order: by the step of the last one's
// next read, the most bytes. Later steps have fewer bytes.
class Sequences {
 public:
  struct End {
    int64_t bytes;
    int tensor;  // -1 before the first
  };

  // The best sequence that a tensor which is read again at `step` continues.
  End Before(int step) const {
    // A sequence whose last tensor is read again at this step or later.
    const auto at = ends_.lower_bound(step);
    return at == ends_.end() ? End{0, -1} : at->second;
  }

  void Add(int step, End end) {
    if (Before(step).bytes >= end.bytes) return;
    auto at = ends_.insert_or_assign(step, end).first;
    while (at != ends_.begin() && std::prev(at)->second.bytes <= end.bytes) {
      ends_.erase(std::prev(at));
    }
  }

 private:
  std::map<int, End> ends_;
};

}  // namespace

ComputeTrace NestedTrace(ComputeTrace trace, const TransferModel& link) {
  std::vector<Tensor>& tensors = trace.tensors;
  tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                               [&link](const Tensor& t) { return MostlyLatency(t, link); }),
                tensors.end());
  Sequences sequences;
  std::vector<int> before;
  for (size_t t = 0; t < tensors.size(); ++t) {
    const Sequences::End end = sequences.Before(tensors[t].next_read);
    before.push_back(end.tensor);
    sequences.Add(tensors[t].next_read,
                  {end.bytes + tensors[t].bytes.value(), static_cast<int>(t)});
  }
  std::vector<Tensor> nested;
  for (int t = sequences.Before(0).tensor; t >= 0; t = before[static_cast<size_t>(t)]) {
    nested.push_back(tensors[static_cast<size_t>(t)]);
  }
  std::reverse(nested.begin(), nested.end());
  tensors = std::move(nested);
  return trace;
}

}  // namespace stowage
