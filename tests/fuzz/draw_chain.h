// Draws chains and links to host memory from the bytes of a fuzzer.
#ifndef STOWAGE_TESTS_FUZZ_DRAW_CHAIN_H_
#define STOWAGE_TESTS_FUZZ_DRAW_CHAIN_H_

#include "solvers/model/chain.h"
#include "solvers/model/transfer_model.h"
#include "tests/fuzz/byte_source.h"

namespace stowage::testing {

// 0 to `most` stages. One in three is wild: then sizes and times may be anything, else most chains
// are legal.
ChainSpec DrawChain(int most, ByteSource* in);

// Anything of a legal chain: from nothing to beyond what store-all takes, often just about that.
Bytes DrawBudget(const Chain& chain, ByteSource* in);

// From a byte in a second, or none at all, to as fast as numbers go; often without host memory.
TransferModel DrawLink(ByteSource* in);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_FUZZ_DRAW_CHAIN_H_
