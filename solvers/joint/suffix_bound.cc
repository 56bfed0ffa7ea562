#include "solvers/joint/suffix_bound.h"

#include <algorithm>
#include <cstddef>

namespace stowage {

SuffixBound::SuffixBound(const Chain& chain, const LinkCosts& link, int64_t memory)
    : memory_(memory),
      per_byte_(link.out.per_byte + link.in.per_byte),
      suffixes_(static_cast<size_t>(chain.length()) + 3) {
  for (int i = chain.length() + 1; i >= 1; --i) {
    Suffix& suffix = suffixes_[static_cast<size_t>(i)];
    const Stage& stage = chain.stage(i);
    suffix.ideal = suffixes_[static_cast<size_t>(i) + 1].ideal +
                   static_cast<double>((stage.forward_time + stage.backward_time).value());
    Fill(chain, i, &suffix);
  }
}

void SuffixBound::Fill(const Chain& chain, int i, Suffix* suffix) const {
  Bytes before;
  int peak = i;
  for (int l = i; l <= chain.length() + 1; ++l) {
    const Stage& stage = chain.stage(l);
    const Bytes need =
        before + stage.saved +
        std::max(stage.forward_saving_overhead, stage.output_gradient + stage.backward_overhead);
    if (need.value() > suffix->need) {
      suffix->need = need.value();
      peak = l;
    }
    before += stage.saved;
  }
  std::vector<Recomputed>& points = suffix->recomputed;
  points.reserve(static_cast<size_t>(peak - i) + 1);
  for (int l = i; l < peak; ++l) {
    const Stage& stage = chain.stage(l);
    if (!stage.recomputable() || stage.saved == Bytes(0)) continue;
    points.push_back({static_cast<double>(stage.saved.value()),
                      static_cast<double>(stage.forward_time.value())});
  }
  std::stable_sort(points.begin(), points.end(), [](const Recomputed& a, const Recomputed& b) {
    return a.time * b.bytes < b.time * a.bytes;
  });
  points.insert(points.begin(), {0, 0});
  for (size_t p = 1; p < points.size(); ++p) {
    points[p].bytes += points[p - 1].bytes;
    points[p].time += points[p - 1].time;
  }
}

double SuffixBound::Least(int i, int64_t held, double backlog, int64_t host) const {
  const Suffix& suffix = suffixes_[static_cast<size_t>(i)];
  const double excess = static_cast<double>(held + suffix.need - memory_);
  const double queue = backlog - suffix.ideal;
  if (excess <= 0) return std::max(0.0, queue);
  const auto link = [&](double recomputed) { return queue + (excess - recomputed) * per_byte_; };
  const std::vector<Recomputed>& points = suffix.recomputed;
  // The first point at which recomputing takes no less than the link, and leaves the host no more
  // than it takes.
  const double least = excess - static_cast<double>(host);
  const auto at = std::partition_point(points.begin(), points.end(), [&](const Recomputed& point) {
    return point.time < link(point.bytes) || point.bytes < least;
  });
  if (at == points.begin()) return std::max(0.0, link(0));
  const Recomputed& before = *(at - 1);
  if (at == points.end()) return std::max(0.0, std::max(before.time, link(before.bytes)));
  // Both are linear in between.
  const double per_byte = (at->time - before.time) / (at->bytes - before.bytes);
  double bytes = before.bytes + (link(before.bytes) - before.time) / (per_byte + per_byte_);
  bytes = std::clamp(std::max(bytes, least), before.bytes, at->bytes);
  bytes = std::min(bytes, excess);
  return std::max({0.0, before.time + (bytes - before.bytes) * per_byte, link(bytes)});
}

}  // namespace stowage
