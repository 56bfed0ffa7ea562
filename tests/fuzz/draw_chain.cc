#include "tests/fuzz/draw_chain.h"

#include <cstdint>

#include "solvers/schedule/evaluator.h"
#include "solvers/schedule/instance.h"

namespace stowage::testing {
namespace {

Stage DrawStage(ByteSource* in) {
  Stage stage;
  stage.forward_time = Nanos(in->Quantity());
  stage.backward_time = Nanos(in->Quantity());
  stage.output = Bytes(in->Quantity());
  // Mostly a legal one, or few chains would come through.
  const int64_t more = in->Quantity();
  const bool legal = more >= 0 && stage.output.value() <= INT64_MAX - more;
  stage.saved = legal ? stage.output + Bytes(more) : Bytes(more);
  stage.output_gradient = in->OneIn(3) ? Bytes(in->Quantity()) : stage.output;
  if (in->OneIn(2)) {
    stage.forward_saving_overhead = Bytes(in->Quantity());
    stage.forward_overhead = Bytes(in->Quantity());
    stage.backward_overhead = Bytes(in->Quantity());
  }
  if (in->OneIn(3)) {
    stage.recompute_saving_time =
        in->OneIn(2) ? Nanos(in->Quantity()) : Nanos(stage.forward_time.value() / 2);
    if (in->OneIn(2)) stage.recompute_saving_overhead = Bytes(stage.output.value() / 2);
  }
  stage.must_keep = in->OneIn(8);
  stage.collective = in->OneIn(16);
  return stage;
}

CopyCost DrawCost(ByteSource* in) {
  CopyCost cost;
  switch (in->Below(8)) {
    case 0:
      cost.bytes_per_second = in->Quantity();  // none, if illegal
      break;
    case 1:
      cost.bytes_per_second = INT64_MAX - in->Byte();
      break;
    case 2:
      cost.bytes_per_second = 1 + in->Byte();
      break;
    default:
      // A byte takes some nanoseconds, or some bytes take one.
      cost.bytes_per_second = (int64_t{1} << 28) * (1 + in->Below(32));
  }
  if (in->OneIn(3)) cost.latency = Nanos(in->Quantity());
  return cost;
}

}  // namespace

ChainSpec DrawChain(int most, ByteSource* in) {
  in->set_wildness(in->Below(3));
  ChainSpec spec;
  spec.input = Bytes(in->Quantity());
  spec.input_gradient = in->OneIn(3) ? Bytes(in->Quantity()) : Bytes(0);
  const int stages = in->Below(most + 1);
  for (int i = 0; i < stages; ++i) {
    // Equal runs take paths of their own.
    spec.stages.push_back(i > 0 && in->OneIn(3) ? spec.stages.back() : DrawStage(in));
  }
  if (in->OneIn(2)) spec.loss = DrawStage(in);
  return spec;
}

Bytes DrawBudget(const Chain& chain, ByteSource* in) {
  const int64_t store_all = Evaluator(chain).Run(StoreAllSchedule(chain))->peak.value();
  switch (in->Below(4)) {
    case 0:
      return Bytes(in->Quantity());
    case 1:
      return Bytes(store_all + in->Below(5) - 2);
    default:
      return Bytes(store_all / 256 * in->Byte() + store_all % 256 * in->Byte() / 256);
  }
}

TransferModel DrawLink(ByteSource* in) {
  TransferModel link;
  link.to_host = DrawCost(in);
  link.to_device = in->OneIn(2) ? DrawCost(in) : link.to_host;
  link.full_duplex = in->OneIn(2);
  const int host = in->Below(4);
  if (host == 1) link.host_memory = Bytes(in->Quantity());
  if (host > 1) link.host_memory = Bytes(INT64_MAX);
  return link;
}

}  // namespace stowage::testing
