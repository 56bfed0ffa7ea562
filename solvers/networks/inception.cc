// Szegedy et al. 2016, "Rethinking the Inception architecture", version 3 as torchvision builds it,
// without the auxiliary classifier: a stage per block.
#include <utility>

#include "solvers/networks/families.h"
#include "solvers/networks/network_builder.h"

namespace stowage {
namespace {

constexpr char kInception[] = "inception_v3";

class InceptionBuilder {
 public:
  explicit InceptionBuilder(const NetworkOptions& options)
      : net_(kInception, {options.batch, 3, options.image, options.image}, kFloatBytes),
        classes_(options.classes) {}

  absl::StatusOr<Network> Build() && {
    AddStem();
    AddBlockA("mixed_5b", 32);
    AddBlockA("mixed_5c", 64);
    AddBlockA("mixed_5d", 64);
    AddBlockB("mixed_6a");
    AddBlockC("mixed_6b", 128);
    AddBlockC("mixed_6c", 160);
    AddBlockC("mixed_6d", 160);
    AddBlockC("mixed_6e", 192);
    AddBlockD("mixed_7a");
    AddBlockE("mixed_7b");
    AddBlockE("mixed_7c");
    const size_t pooled = net_.GlobalAvgPool(net_.last());
    net_.Linear(net_.Flatten(net_.Dropout(pooled)), classes_);
    net_.EndStage("head", "average_pool_dropout_linear");
    return std::move(net_).Build();
  }

 private:
  size_t Convolve(size_t x, int64_t channels, const Window& window) {
    return net_.Relu(net_.BatchNorm(net_.Conv2d(x, channels, window)));
  }
  size_t One(size_t x, int64_t channels) { return Convolve(x, channels, Window::Square(1)); }
  // Keeps the image's size.
  size_t Three(size_t x, int64_t channels) {
    return Convolve(x, channels, Window::Square(3, 1, 1));
  }
  size_t Halve(size_t x, int64_t channels) { return Convolve(x, channels, Window::Square(3, 2)); }
  size_t Row(size_t x, int64_t channels, int64_t width) {
    return Convolve(x, channels, {1, width, 1, 1, 0, width / 2});
  }
  size_t Column(size_t x, int64_t channels, int64_t height) {
    return Convolve(x, channels, {height, 1, 1, 1, height / 2, 0});
  }
  size_t PooledBranch(size_t x, int64_t channels) {
    return One(net_.AvgPool(x, Window::Square(3, 1, 1)), channels);
  }

  void AddStem() {
    Halve(net_.last(), 32);
    net_.EndStage("conv_1a", "conv2d_bn_relu");
    Convolve(net_.last(), 32, Window::Square(3));
    net_.EndStage("conv_2a", "conv2d_bn_relu");
    Three(net_.last(), 64);
    net_.EndStage("conv_2b", "conv2d_bn_relu");
    net_.MaxPool(net_.last(), Window::Square(3, 2));
    net_.EndStage("maxpool1", "max_pool2d");
    One(net_.last(), 80);
    net_.EndStage("conv_3b", "conv2d_bn_relu");
    Convolve(net_.last(), 192, Window::Square(3));
    net_.EndStage("conv_4a", "conv2d_bn_relu");
    net_.MaxPool(net_.last(), Window::Square(3, 2));
    net_.EndStage("maxpool2", "max_pool2d");
  }

  void AddBlockA(const char* name, int64_t pool_channels) {
    const size_t x = net_.last();
    const size_t one = One(x, 64);
    const size_t five = Convolve(One(x, 48), 64, Window::Square(5, 1, 2));
    const size_t three = Three(Three(One(x, 64), 96), 96);
    net_.Cat({one, five, three, PooledBranch(x, pool_channels)});
    net_.EndStage(name, "inception_a");
  }

  void AddBlockB(const char* name) {
    const size_t x = net_.last();
    const size_t three = Halve(x, 384);
    const size_t twice = Halve(Three(One(x, 64), 96), 96);
    net_.Cat({three, twice, net_.MaxPool(x, Window::Square(3, 2))});
    net_.EndStage(name, "inception_b");
  }

  void AddBlockC(const char* name, int64_t width) {
    const size_t x = net_.last();
    const size_t one = One(x, 192);
    const size_t seven = Column(Row(One(x, width), width, 7), 192, 7);
    size_t twice = Row(Column(One(x, width), width, 7), width, 7);
    twice = Row(Column(twice, width, 7), 192, 7);
    net_.Cat({one, seven, twice, PooledBranch(x, 192)});
    net_.EndStage(name, "inception_c");
  }

  void AddBlockD(const char* name) {
    const size_t x = net_.last();
    const size_t three = Halve(One(x, 192), 320);
    const size_t seven = Halve(Column(Row(One(x, 192), 192, 7), 192, 7), 192);
    net_.Cat({three, seven, net_.MaxPool(x, Window::Square(3, 2))});
    net_.EndStage(name, "inception_d");
  }

  size_t Fork(size_t x) {
    const size_t row = Row(x, 384, 3);
    return net_.Cat({row, Column(x, 384, 3)});
  }

  void AddBlockE(const char* name) {
    const size_t x = net_.last();
    const size_t one = One(x, 320);
    const size_t three = Fork(One(x, 384));
    const size_t twice = Fork(Three(One(x, 448), 384));
    net_.Cat({one, three, twice, PooledBranch(x, 192)});
    net_.EndStage(name, "inception_e");
  }

  NetworkBuilder net_;
  int64_t classes_;
};

}  // namespace

std::vector<NetworkInfo> Inceptions() {
  return {{kInception, "parallel branches, a stage per block, no auxiliary classifier"}};
}

absl::StatusOr<Network> MakeInception(const NetworkOptions& options) {
  if (options.name != kInception) return absl::NotFoundError(options.name);
  return InceptionBuilder(options).Build();
}

}  // namespace stowage
