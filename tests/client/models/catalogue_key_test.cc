// That jobs ask by the keys that plans of the catalogue have: what client/torch tells from the shapes of a
// reference network is, byte by byte, what solvers/networks describes.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <tuple>

#include "client/models/models.h"
#include "client/torch/shape_profiler.h"
#include "solvers/catalogue/catalogue_folder.h"
#include "solvers/model/canonical.h"
#include "solvers/networks/network_bytes.h"
#include "solvers/networks/networks.h"

namespace stowage {
namespace {

TEST(CatalogueKey, IsThatOfAJobWithTheNetwork) {
  const auto shipped = ReadCatalogue(STOWAGE_SOURCE_DIR "/solvers/catalogue/data");
  ASSERT_TRUE(shipped.ok()) << shipped.status();
  for (const auto& [name, image] :
       {std::tuple("alexnet", 224), std::tuple("vgg11", 224), std::tuple("resnet18", 224),
        std::tuple("resnet50", 224), std::tuple("densenet121", 224),
        std::tuple("inception_v3", 299)}) {
    SCOPED_TRACE(name);
    constexpr int64_t kBatch = 8, kClasses = 1000;
    ModelOptions options;
    options.image = image;
    const ChainModel model = MakeModel(name, options).value();
    const Sample sample = MakeImageSample(kBatch, image, kClasses, 1).value();
    const auto shapes = ChainFromShapes(model, sample.input, sample.target);
    ASSERT_TRUE(shapes.ok()) << shapes.status();
    const CatalogueHit hit = FindInCatalogue(*shipped, {name, image, kBatch, kClasses}, "a100");
    ASSERT_NE(hit.frontier, nullptr);
    Profile described{name, shapes->device, *ChainFor(*hit.network, *hit.frontier),
                      CostSource::kModelled};
    EXPECT_TRUE(CanonicalBytes(described, {}) == CanonicalBytes(*shapes, {}));

    // What `stowage fit` subtracts, too.
    const Network network = MakeNetwork({name, image, 1, kClasses}).value();
    int64_t parameters = 0, buffers = 0;
    for (const at::Tensor& parameter : model.parameters()) {
      parameters += static_cast<int64_t>(parameter.nbytes());
    }
    for (const at::Tensor& buffer : model.buffers()) {
      buffers += static_cast<int64_t>(buffer.nbytes());
    }
    EXPECT_EQ(BytesOfModel(network).parameters.value(), parameters);
    EXPECT_EQ(BytesOfModel(network).buffers.value(), buffers);
  }
}

}  // namespace
}  // namespace stowage
