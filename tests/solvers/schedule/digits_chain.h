// The chain, link and schedule of the tests of single rules of transfers.
#ifndef STOWAGE_TESTS_SOLVERS_SCHEDULE_DIGITS_CHAIN_H_
#define STOWAGE_TESTS_SOLVERS_SCHEDULE_DIGITS_CHAIN_H_

#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "solvers/schedule/schedule.h"

namespace stowage::testing {

// Two stages and a loss; sizes that are sums of distinct powers of ten. Every forward takes 10 ns,
// every backward 100.
inline ChainSpec DigitsSpec() {
  ChainSpec spec;
  spec.input = Bytes(1);
  Stage s;
  s.forward_time = Nanos(10);
  s.backward_time = Nanos(100);
  s.output = Bytes(10);
  s.saved = Bytes(200);
  spec.stages = {s, s};
  spec.stages[1].output = Bytes(3000);
  spec.stages[1].saved = Bytes(40000);
  spec.loss = s;
  spec.loss.output = Bytes(0);
  spec.loss.saved = Bytes(500000);
  return spec;
}

inline Chain Digits() { return *Chain::Create(DigitsSpec()); }

// To the host a byte takes 1 ns, to the device 2 ns.
inline TransferModel DigitsLink() {
  TransferModel transfers;
  transfers.to_host.bytes_per_second = 1000000000;
  transfers.to_device.bytes_per_second = 500000000;
  transfers.host_memory = Bytes(1000000);
  return transfers;
}

// Saved 1 goes while nothing needs it, and comes back.
inline Schedule RoundTrip() {
  constexpr TensorKind kSaved = TensorKind::kSaved;
  return {ForwardSave(1),
          OffloadStart(kSaved, 1),
          ForwardSave(2),
          DropSavedKeepOutput(2),
          OffloadWait(kSaved, 1),
          ForwardSave(3),
          PrefetchStart(kSaved, 1),
          Backward(3),
          PrefetchWait(kSaved, 1),
          ForwardSave(2),
          Backward(2),
          Backward(1)};
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_SCHEDULE_DIGITS_CHAIN_H_
