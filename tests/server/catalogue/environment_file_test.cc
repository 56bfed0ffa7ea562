#include "server/catalogue/environment_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace stowage {
namespace {

using ::testing::HasSubstr;

TEST(EnvironmentFile, HasALinePerEnvironment) {
  const auto environments = ParseEnvironments(
      "# our cluster\n"
      "\n"
      "kind=a100 tenant=vision device=\"NVIDIA A100-SXM4-40GB\" framework=\"libtorch 2.11.0\" "
      "math_settings=\"deterministic=0 cudnn=1\" granularity=512 duplex=full\n"
      "  kind=cpu device=Xeon bandwidth_class=7 \r\n");
  ASSERT_TRUE(environments.ok()) << environments.status();
  ASSERT_EQ(environments->size(), 2u);
  const CatalogueEnvironment& gpu = (*environments)[0];
  EXPECT_EQ(gpu.kind, "a100");
  EXPECT_EQ(gpu.tenant, "vision");
  EXPECT_EQ(gpu.device.model, "NVIDIA A100-SXM4-40GB");
  EXPECT_EQ(gpu.device.framework, "libtorch 2.11.0");
  EXPECT_EQ(gpu.device.math_settings, "deterministic=0 cudnn=1");
  EXPECT_EQ(gpu.device.allocation_granularity, Bytes(512));
  EXPECT_EQ(gpu.device.duplex, Duplex::kFull);
  const CatalogueEnvironment& cpu = (*environments)[1];
  EXPECT_EQ(cpu.tenant, "");
  EXPECT_EQ(cpu.device.model, "Xeon");
  EXPECT_EQ(cpu.device.allocation_granularity, Bytes(1));
  EXPECT_EQ(cpu.device.bandwidth_class, 7);
  EXPECT_EQ(cpu.device.duplex, Duplex::kUnspecified);
  EXPECT_TRUE(ParseEnvironments("")->empty());
}

TEST(EnvironmentFile, MistakesAreNamedWithTheirLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"device=x", "kind is missing"},
      {"kind=a100", "device is missing"},
      {"kind=abacus device=x", "there is no kind of device 'abacus'"},
      {"kind=a100 device=x colour=red", "there is no 'colour'"},
      {"kind=a100 device=x device=y", "device comes twice"},
      {"kind=a100 device=\"x", "the value of device has no end"},
      {"kind=a100 device=\"x\"y", "the value of device has no end"},
      {"kind=a100 device=x granularity=much", "granularity = 'much' must be a number"},
      {"kind=a100 device=x granularity=-1", "granularity"},
      {"kind=a100 device=x bandwidth_class=99", "bandwidth_class"},
      {"kind=a100 device=x duplex=both", "must be half or full"},
      {"kind=a100 device=x hello", "'hello' is no NAME=VALUE"},
  };
  for (const auto& [line, why] : cases) {
    const auto read = ParseEnvironments(std::string("# one\n") + line + "\n");
    EXPECT_EQ(read.status().code(), absl::StatusCode::kInvalidArgument) << line;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("line 2: ")) << line;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(why)) << line;
  }
}

}  // namespace
}  // namespace stowage
