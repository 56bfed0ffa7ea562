#include "tests/solvers/chain/chain_solver_conformance.h"

namespace stowage::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(All, ChainSolvers, ::testing::ValuesIn(ChainSolverCases()),
                         ChainSolverCaseName);

}  // namespace
}  // namespace stowage::testing
