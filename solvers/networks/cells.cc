// Networks of cells that a search has found, for images of 32 x 32 pixels: NASNet-A (Zoph et al.
// 2018, "Learning transferable architectures"), AmoebaNet-A (Real et al. 2019, "Regularized
// evolution") and DARTS, second order (Liu et al. 2019, "DARTS: differentiable architecture
// search"), all three as the last of these evaluates them: 20 cells of 36 channels, the 7th and the
// 14th of which halve the image; no auxiliary classifier, no dropped paths.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "solvers/networks/families.h"
#include "solvers/networks/network_builder.h"

namespace stowage {
namespace {

constexpr int kCells = 20;
constexpr int64_t kChannels = 36;
constexpr int64_t kStemFactor = 3;

enum class CellOp { kAvg3, kMax3, kSkip, kSep3, kSep5, kSep7, kDil3, kSevenByOne };

// Of a cell's tensors: its two inputs are 0 and 1, what its nodes make follows.
struct CellEdge {
  CellOp op;
  size_t input;
};

struct Cell {
  std::vector<std::pair<CellEdge, CellEdge>> nodes;  // each adds two edges up
  std::vector<size_t> output;                        // concatenated
};

struct CellNetworkSpec {
  const char* name;
  const char* description;
  Cell normal;
  Cell reduction;
};

CellNetworkSpec NasNet() {
  using Op = CellOp;
  return {"nasnet_a",
          "20 cells of NASNet-A",
          {{{{Op::kSep5, 1}, {Op::kSep3, 0}},
            {{Op::kSep5, 0}, {Op::kSep3, 0}},
            {{Op::kAvg3, 1}, {Op::kSkip, 0}},
            {{Op::kAvg3, 0}, {Op::kAvg3, 0}},
            {{Op::kSep3, 1}, {Op::kSkip, 1}}},
           {2, 3, 4, 5, 6}},
          {{{{Op::kSep5, 1}, {Op::kSep7, 0}},
            {{Op::kMax3, 1}, {Op::kSep7, 0}},
            {{Op::kAvg3, 1}, {Op::kSep5, 0}},
            {{Op::kSkip, 3}, {Op::kAvg3, 2}},
            {{Op::kSep3, 2}, {Op::kMax3, 1}}},
           {4, 5, 6}}};
}

CellNetworkSpec AmoebaNet() {
  using Op = CellOp;
  return {"amoebanet_a",
          "20 cells of AmoebaNet-A",
          {{{{Op::kAvg3, 0}, {Op::kMax3, 1}},
            {{Op::kSep3, 0}, {Op::kSep5, 2}},
            {{Op::kSep3, 0}, {Op::kAvg3, 3}},
            {{Op::kSep3, 1}, {Op::kSkip, 1}},
            {{Op::kSkip, 0}, {Op::kAvg3, 1}}},
           {4, 5, 6}},
          {{{{Op::kAvg3, 0}, {Op::kSep3, 1}},
            {{Op::kMax3, 0}, {Op::kSep7, 2}},
            {{Op::kSep7, 0}, {Op::kAvg3, 1}},
            {{Op::kMax3, 0}, {Op::kMax3, 1}},
            {{Op::kSevenByOne, 0}, {Op::kSep3, 5}}},
           {3, 4, 6}}};
}

CellNetworkSpec Darts() {
  using Op = CellOp;
  return {"darts_v2",
          "20 cells of DARTS, second order",
          {{{{Op::kSep3, 0}, {Op::kSep3, 1}},
            {{Op::kSep3, 0}, {Op::kSep3, 1}},
            {{Op::kSep3, 1}, {Op::kSkip, 0}},
            {{Op::kSkip, 0}, {Op::kDil3, 2}}},
           {2, 3, 4, 5}},
          {{{{Op::kMax3, 0}, {Op::kMax3, 1}},
            {{Op::kSkip, 2}, {Op::kMax3, 1}},
            {{Op::kMax3, 0}, {Op::kSkip, 2}},
            {{Op::kSkip, 2}, {Op::kMax3, 1}}},
           {2, 3, 4, 5}}};
}

const std::vector<CellNetworkSpec>& CellNetworkSpecs() {
  static const auto* const kSpecs =
      new std::vector<CellNetworkSpec>{NasNet(), AmoebaNet(), Darts()};
  return *kSpecs;
}

class CellNetworkBuilder {
 public:
  CellNetworkBuilder(const CellNetworkSpec& architecture, const NetworkOptions& options)
      : architecture_(architecture),
        classes_(options.classes),
        net_(architecture.name, {options.batch, 3, options.image, options.image}, kFloatBytes) {}

  absl::StatusOr<Network> Build() && {
    net_.BatchNorm(net_.Conv2d(net_.last(), kStemFactor * kChannels, Window::Square(3, 1, 1)));
    net_.EndStage("stem", "conv2d_bn");
    AddCells();
    net_.EndStage("cells", "cells");
    net_.Linear(net_.Flatten(net_.GlobalAvgPool(net_.last())), classes_);
    net_.EndStage("head", "average_pool_linear");
    return std::move(net_).Build();
  }

 private:
  void AddCells() {
    size_t before_last = net_.last();
    size_t last = net_.last();
    int64_t channels = kChannels;
    bool last_reduces = false;
    for (int i = 0; i < kCells; ++i) {
      const bool reduces = i == kCells / 3 || i == 2 * kCells / 3;
      if (reduces) channels *= 2;
      before_last =
          last_reduces ? Halve(before_last, channels) : ReluConvNorm(before_last, channels);
      const size_t input = ReluConvNorm(last, channels);
      const Cell& cell = reduces ? architecture_.reduction : architecture_.normal;
      const size_t output = AddCell(cell, {before_last, input}, reduces ? 2 : 1);
      before_last = std::exchange(last, output);
      last_reduces = reduces;
    }
  }

  size_t AddCell(const Cell& cell, std::vector<size_t> tensors, int64_t stride) {
    for (const auto& [left, right] : cell.nodes) {
      const size_t a = AddEdge(left, tensors, stride);
      const size_t b = AddEdge(right, tensors, stride);
      tensors.push_back(net_.Add(a, b));
    }
    std::vector<size_t> parts;
    for (const size_t part : cell.output) parts.push_back(tensors[part]);
    return net_.Cat(parts);
  }

  // Only what reads an input of the cell has its stride.
  size_t AddEdge(const CellEdge& edge, const std::vector<size_t>& tensors, int64_t cell_stride) {
    const size_t x = tensors[edge.input];
    const int64_t stride = edge.input < 2 ? cell_stride : 1;
    switch (edge.op) {
      case CellOp::kAvg3:
        return net_.AvgPool(x, Window::Square(3, stride, 1));
      case CellOp::kMax3:
        return net_.MaxPool(x, Window::Square(3, stride, 1));
      case CellOp::kSkip:
        return stride == 1 ? net_.Identity(x) : Halve(x, net_.channels(x));
      case CellOp::kSep3:
        return SeparableTwice(x, 3, stride);
      case CellOp::kSep5:
        return SeparableTwice(x, 5, stride);
      case CellOp::kSep7:
        return SeparableTwice(x, 7, stride);
      case CellOp::kDil3:
        return Separable(x, {3, 3, stride, stride, 2, 2, /*dilation=*/2});
      case CellOp::kSevenByOne:
        return SevenByOne(x, stride);
    }
    return x;
  }

  size_t ReluConvNorm(size_t x, int64_t channels) {
    return net_.BatchNorm(net_.Conv2d(net_.ReluCopy(x), channels, Window::Square(1)));
  }

  size_t Separable(size_t x, const Window& window) {
    const size_t y = net_.DepthwiseConv2d(net_.ReluCopy(x), window);
    return net_.BatchNorm(net_.Conv2d(y, net_.channels(x), Window::Square(1)));
  }

  size_t SeparableTwice(size_t x, int64_t side, int64_t stride) {
    const size_t y = Separable(x, Window::Square(side, stride, side / 2));
    return Separable(y, Window::Square(side, 1, side / 2));
  }

  size_t SevenByOne(size_t x, int64_t stride) {
    const int64_t channels = net_.channels(x);
    const size_t y = net_.Conv2d(net_.ReluCopy(x), channels, {1, 7, 1, stride, 0, 3});
    return net_.BatchNorm(net_.Conv2d(y, channels, {7, 1, stride, 1, 3, 0}));
  }

  // Half of the channels from the even pixels, half from the odd ones.
  size_t Halve(size_t x, int64_t channels) {
    const size_t y = net_.ReluCopy(x);
    const size_t even = net_.Conv2d(y, channels / 2, Window::Square(1, 2));
    const size_t odd = net_.Conv2d(net_.Slice(y), channels / 2, Window::Square(1, 2));
    return net_.BatchNorm(net_.Cat({even, odd}));
  }

  const CellNetworkSpec& architecture_;
  int64_t classes_;
  NetworkBuilder net_;
};

}  // namespace

std::vector<NetworkInfo> CellNetworks() {
  std::vector<NetworkInfo> infos;
  for (const CellNetworkSpec& architecture : CellNetworkSpecs()) {
    infos.push_back({architecture.name, architecture.description, /*chain=*/false});
  }
  return infos;
}

absl::StatusOr<Network> MakeCellNetwork(const NetworkOptions& options) {
  for (const CellNetworkSpec& architecture : CellNetworkSpecs()) {
    if (options.name == architecture.name) {
      return CellNetworkBuilder(architecture, options).Build();
    }
  }
  return absl::NotFoundError(options.name);
}

}  // namespace stowage
