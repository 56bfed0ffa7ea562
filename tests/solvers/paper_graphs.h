// The networks of Feng and Huang 2018 ("Optimal gradient checkpoint search for arbitrary
// computation graphs", Table 2) as that paper counts them, at its batch sizes.
//
// A vertex is a tensor that its graphs count: in-place activations live in what they overwrite,
// flattened, sliced and dropped-out tensors in what they are made from, and the loss is left out.
// The input is a vertex. Made from the graph of all ops (network_graph.h) by folding, so that each
// network is described once.
#ifndef STOWAGE_TESTS_SOLVERS_PAPER_GRAPHS_H_
#define STOWAGE_TESTS_SOLVERS_PAPER_GRAPHS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "solvers/model/graph.h"
#include "solvers/zoo/networks.h"

namespace stowage {

// Where the graphs of that paper differ from one another.
struct FoldRules {
  bool flatten_is_vertex = false;
  // An adaptive pooling of an image that has the size already.
  bool idle_pool_is_vertex = true;
};

struct PaperGraph {
  std::string name;  // of the network, with the variant
  NetworkOptions network;
  FoldRules rules;
};

// In the order of that paper's tables, variants at the end of each family:
//   alexnet_folded_pool  without the pooling that changes nothing: the twelve vertices of the
//                        paper's tables, where the graph that its code makes has thirteen
//   resnet50_jit         as a traced module shows it, with the flattened tensor
//   *_full_cat           DenseNets whose layers each concatenate everything before them in their
//                        block, as a trace of torchvision shows them; the paper's concatenate
//                        layer by layer
const std::vector<PaperGraph>& PaperGraphs();

// Vertices have bytes of outputs, modelled times and flags; no gradients, overheads or aliases. A
// folded vertex is named after its first op; its op_kind joins those of all, as in "Conv2d+ReLU".
// Errors: those of GraphOf. O(ops + edges).
absl::StatusOr<Graph> FoldedGraphOf(const Network& network, const FoldRules& rules,
                                    const DeviceModel& device);

// MakeNetwork and FoldedGraphOf in one, under the name of the paper graph.
absl::StatusOr<Graph> MakePaperGraph(const PaperGraph& paper_graph, const DeviceModel& device);

}  // namespace stowage

#endif  // STOWAGE_TESTS_SOLVERS_PAPER_GRAPHS_H_
