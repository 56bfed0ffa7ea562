// The joint solver on a reference network beside recomputing alone and offloading alone.
#ifndef STOWAGE_TESTS_SOLVERS_TRANSFER_EACH_ALONE_H_
#define STOWAGE_TESTS_SOLVERS_TRANSFER_EACH_ALONE_H_

#include <string>

#include "solvers/model/chain.h"

namespace stowage::testing {

// Expects it to be strictly faster at 20% and 50% of the way from the least budget to store-all, where
// neither is at the ideal time already. Over PCIe 3.
void ExpectFasterThanEachAlone(const std::string& name, const Chain& chain);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SOLVERS_TRANSFER_EACH_ALONE_H_
