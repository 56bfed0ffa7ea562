// What two papers print of the networks that tests/solvers/paper_graphs.h makes: facts to hold
// figures against, never inputs of a computation.
//
//   R   "Cutting down training memory by re-fowarding", submitted to ICLR 2019, Table 1; an earlier
//       version of F
//   F   Feng & Huang 2018, "Optimal gradient checkpoint search for arbitrary computation graphs",
//       Table 2
//   FS  the supplementary material of F, Table 1
#ifndef STOWAGE_TESTS_BENCH_PAPER_TABLES_H_
#define STOWAGE_TESTS_BENCH_PAPER_TABLES_H_

#include <optional>
#include <string>
#include <vector>

namespace stowage {

// R: MB measured, and the ratio of the objective to store-all's.
struct ReforwardingFigures {
  int regular = 0;
  int chen = 0;  // "Chen et al. (2016)", for networks that are no path their "manual"
  int theirs = 0;
  double measured_ratio = 0;
  double theoretical_ratio = 0;
};

struct PaperFigures {
  std::string network;  // name of the PaperGraph
  std::optional<ReforwardingFigures> r;
  // F: MB measured.
  int f_regular = 0;
  std::optional<int> f_random;
  std::optional<int> f_chen;
  int f_theirs = 0;
  int f_time_overhead = 0;  // per cent, of their checkpoints' step over plain training's
  // FS.
  int fs_vertices = 0;
  double fs_seconds = 0;
};

const std::vector<PaperFigures>& AllPaperFigures();

// Of a network as the papers list it, or null: variants of a graph have none.
const PaperFigures* PaperFiguresOf(const std::string& network);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_PAPER_TABLES_H_
