#include "tests/solvers/chain/chain_frontier_conformance.h"

namespace stowage::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(All, ChainFrontiers, ::testing::ValuesIn(ChainSolverCases()),
                         ChainSolverCaseName);

}  // namespace
}  // namespace stowage::testing
