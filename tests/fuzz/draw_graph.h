// Draws graphs from the bytes of a fuzzer.
#ifndef STOWAGE_TESTS_FUZZ_DRAW_GRAPH_H_
#define STOWAGE_TESTS_FUZZ_DRAW_GRAPH_H_

#include "solvers/model/graph.h"
#include "tests/fuzz/byte_source.h"

namespace stowage::testing {

// 0 to `most` vertices of any kind. One in four is wild: then ids, orders, inputs and sizes may be
// anything, else most graphs are legal.
GraphSpec DrawGraph(int most, ByteSource* in);

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_FUZZ_DRAW_GRAPH_H_
