#include "tests/fuzz/draw_graph.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace stowage::testing {
namespace {

// Mostly the one before, or a graph is seldom more than dust.
int64_t DrawInput(int index, int count, bool wild, ByteSource* in) {
  if (wild && in->OneIn(32)) return in->Below(count + 2);  // itself, later ones, unknown ones
  return in->OneIn(2) ? std::max(0, index - 1) : in->Below(std::max(1, index));
}

Vertex DrawVertex(int index, int count, bool wild, ByteSource* in) {
  Vertex v;
  v.id = wild && in->OneIn(64) ? in->Below(count) : index;
  v.program_order = wild && in->OneIn(64) ? in->Quantity() : 2 * index;
  if (in->OneIn(16)) v.name = std::string(1, static_cast<char>(in->Byte()));
  v.output = Bytes(in->Quantity());
  const int shape = in->Byte();
  const int inputs = index == 0 || shape % 16 == 15 ? 0 : 1 + shape % 3;
  for (int i = 0; i < inputs; ++i) {
    v.inputs.push_back({DrawInput(index, count, wild, in), (shape >> (4 + i)) % 2 == 1});
  }
  const int flags = in->Byte();
  if (flags < 128) return v;
  v.output_gradient = v.output;
  v.backward_needs_output = flags % 2 == 1;
  v.forward_time = Nanos(in->Quantity());
  v.backward_time = Nanos(in->Quantity());
  if (flags < 160) return v;
  const int kind = in->Byte();
  if (kind % 4 == 1 && (wild || inputs > 0)) v.alias = AliasKind::kView;
  if (kind % 4 == 2 && (wild || inputs > 0)) v.alias = AliasKind::kInPlace;
  v.linear_multi_input = (kind & 4) != 0;
  v.random = (kind & 8) != 0;
  v.stateful = (kind & 16) != 0;
  v.collective = (kind & 224) == 32;
  v.must_keep = (kind & 224) == 64;
  if (flags < 224) return v;
  v.extra_saved = Bytes(in->Quantity());
  v.forward_saving_overhead = Bytes(in->Quantity());
  v.forward_overhead = Bytes(in->Quantity());
  v.backward_overhead = Bytes(in->Quantity());
  v.transient_parameters = Bytes(in->Quantity());
  if (in->OneIn(2)) v.recompute_saving_time = Nanos(v.forward_time.value() / 2);
  return v;
}

}  // namespace

GraphSpec DrawGraph(int most, ByteSource* in) {
  const bool wild = in->OneIn(4);
  in->set_wildness(wild ? 2 : in->Below(2));
  GraphSpec spec;
  const int count = in->Below(most + 1);
  for (int i = 0; i < count; ++i) spec.vertices.push_back(DrawVertex(i, count, wild, in));
  return spec;
}

}  // namespace stowage::testing
