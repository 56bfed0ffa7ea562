// That jobs ask by the keys that plans of the catalogue have: what client/torch tells from the shapes of a
// reference network is, byte by byte, what solvers/zoo describes.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "client/models/models.h"
#include "client/torch/shapes/shape_profiler.h"
#include "solvers/model/canonical.h"
#include "solvers/zoo/catalogue.h"
#include "solvers/zoo/networks.h"
#include "solvers/zoo/roofline.h"
#include "tests/client/models/means_of_today.h"

namespace stowage {
namespace {

std::vector<NetworkCatalogue> Shipped() {
  auto shipped = ReadCatalogue(STOWAGE_SOURCE_DIR "/solvers/zoo/data");
  EXPECT_TRUE(shipped.ok()) << shipped.status();
  return std::move(shipped).value();
}

void ExpectKeyOf(const ChainModel& model, const Sample& sample, const Problem& described) {
  const auto shapes = ChainFromShapes(model, sample.input, sample.target);
  ASSERT_TRUE(shapes.ok()) << shapes.status();
  const Profile profile{"described", shapes->device, described, CostSource::kModelled};
  EXPECT_TRUE(CanonicalBytes(profile, {}) == CanonicalBytes(*shapes, {}));
}

int64_t BytesOf(const std::vector<at::Tensor>& tensors) {
  int64_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

// What `stowage fit` subtracts, too.
void ExpectModelBytes(const ChainModel& model, const NetworkOptions& options) {
  const ModelBytes bytes = BytesOfModel(MakeNetwork(options).value());
  EXPECT_EQ(bytes.parameters.value(), BytesOf(model.parameters()));
  EXPECT_EQ(bytes.buffers.value(), BytesOf(model.buffers()));
  EXPECT_EQ(bytes.tied.value(), BytesOf(model.tied_parameters()));
}

void ExpectFound(const std::vector<NetworkCatalogue>& shipped, const NetworkOptions& options,
                 const ChainModel& model, const Sample& sample) {
  const CatalogueHit hit = FindInCatalogue(shipped, options, "a100");
  ASSERT_NE(hit.frontier, nullptr);
  ExpectKeyOf(model, sample, *ProblemFor(*hit.network, *hit.frontier));
  ExpectModelBytes(model, options);
}

TEST(CatalogueKey, IsThatOfAJobWithTheNetwork) {
  const std::vector<NetworkCatalogue> shipped = Shipped();
  for (const auto& [name, image] :
       {std::tuple("alexnet", 224), std::tuple("vgg11", 224), std::tuple("resnet18", 224),
        std::tuple("resnet50", 224), std::tuple("densenet121", 224),
        std::tuple("inception_v3", 299)}) {
    SCOPED_TRACE(name);
    constexpr int64_t kBatch = 8, kClasses = 1000;
    ModelOptions options;
    options.image = image;
    ExpectFound(shipped, {name, image, kBatch, kClasses}, MakeModel(name, options).value(),
                MakeImageSample(kBatch, image, kClasses, 1).value());
  }
}

TEST(CatalogueKey, IsThatOfAJobWithADecoder) {
  constexpr int64_t kBatch = 8, kLength = 512;
  NetworkOptions options;
  options.name = "gpt2";
  options.batch = kBatch;
  options.length = kLength;
  const DecoderOptions decoder = NamedDecoder(options).value();
  ExpectFound(Shipped(), options, MakeModel("gpt2").value(),
              MakeTokenSample(kBatch, kLength, decoder.vocabulary, 1).value());
}

TEST(CatalogueKey, IsThatOfAJobWithACellNetworkOpByOp) {
  const std::vector<NetworkCatalogue> shipped = Shipped();
  for (const char* name : {"nasnet_a", "amoebanet_a", "darts_v2"}) {
    SCOPED_TRACE(name);
    constexpr int64_t kBatch = 64, kClasses = 10, kSide = 32;
    ModelOptions options;
    options.classes = kClasses;
    options.image = kSide;
    const GraphModel model = MakeGraphModel(name, options).value();
    const Sample sample = MakeImageSample(kBatch, kSide, kClasses, 1).value();
    const auto shapes = GraphFromShapes(model, {sample.input}, sample.target);
    ASSERT_TRUE(shapes.ok()) << shapes.status();
    Profile job = *shapes;
    const NetworkOptions described_as{name, kSide, kBatch, kClasses};
    job.problem = WithMeansOfToday(std::get<Graph>(job.problem), MakeNetwork(described_as).value());
    const CatalogueHit hit = FindInCatalogue(shipped, described_as, "a100", /*graph=*/true);
    ASSERT_NE(hit.frontier, nullptr);
    const Profile described{"described", job.device, *ProblemFor(*hit.network, *hit.frontier),
                            CostSource::kModelled};
    EXPECT_TRUE(CanonicalBytes(described, {}) == CanonicalBytes(job, {}));
  }
}

// A head of its own has the key of one that is the embedding.
TEST(CatalogueKey, OfADecoderDoesNotTellWhetherItsHeadIsTied) {
  DecoderOptions options;
  options.layers = 3;
  options.width = 64;
  options.heads = 4;
  options.length = 24;
  options.vocabulary = 100;
  options.batch = 2;
  const Sample sample = MakeTokenSample(2, 24, 100, 1).value();
  const Chain described = ChainOf(MakeDecoder(options).value(), ModelledV100()).value();
  for (const bool tied : {false, true}) {
    SCOPED_TRACE(tied);
    ExpectKeyOf(MakeDecoderModel(options, tied).value(), sample, described);
  }
}

}  // namespace
}  // namespace stowage
