// What of a GPU and of LibTorch's settings a key is made of: read of a device that is not there.
#include "client/torch/profile/device_description.h"

#include <ATen/Context.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "client/torch/base/torch_version.h"
#include "tests/client/torch/profile/clocked_device.h"

namespace stowage {
namespace {

using testing::HasSubstr;

class FakeGpu final : public ClockedDevice {
 public:
  c10::Device device() const override { return c10::Device(c10::kCUDA, 0); }
  std::vector<DeviceSetting> Software() const override { return software; }

  std::vector<DeviceSetting> software = {
      {"cuda", "13000"}, {"driver", "13000"}, {"cudnn", "91900"}, {"multiprocessors", "132"}};
};

std::string SettingsOf(const FakeGpu& gpu) { return DescribeDevice(&gpu).math_settings; }

TEST(DeviceDescription, EachOfAGpusSettingsIsInItsKey) {
  FakeGpu gpu;
  at::Context& context = at::globalContext();
  using Set = std::function<void(bool)>;
  std::vector<std::pair<std::string, Set>> settings = {
    {"cudnn", [&](bool on) { context.setUserEnabledCuDNN(!on); }},
    {"cudnn_benchmark", [&](bool on) { context.setBenchmarkCuDNN(on); }},
    {"cudnn_deterministic", [&](bool on) { context.setDeterministicCuDNN(on); }},
    {"deterministic", [&](bool on) { context.setDeterministicAlgorithms(on, true); }},
    {"flash", [&](bool on) { context.setSDPUseFlash(!on); }},
    {"math", [&](bool on) { context.setSDPUseMath(!on); }},
#if STOWAGE_TORCH_AT_LEAST(2, 7)
    {"efficient", [&](bool on) { context.setSDPUseMemEfficient(!on); }},
    {"cudnn attention", [&](bool on) { context.setSDPUseCuDNN(!on); }},
    {"reduced", [&](bool on) { context.setAllowFP16BF16ReductionMathSDP(on); }},
    {"fp16_accumulation", [&](bool on) { context.setAllowFP16AccumulationCuBLAS(on); }},
#endif
  };
  for (const char* const name : {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}) {
    settings.emplace_back(name, [name](bool on) {
      if (on) {
        setenv(name, "expandable_segments:True", 1);
      } else {
        unsetenv(name);
      }
    });
  }
  for (size_t i = 0; i < gpu.software.size(); ++i) {
    settings.emplace_back(gpu.software[i].name, [&gpu, i, before = gpu.software[i].value](bool on) {
      gpu.software[i].value = on ? before + "1" : before;
    });
  }
  for (const auto& [name, set] : settings) set(false);
  const std::string plain = SettingsOf(gpu);
  for (const auto& [name, set] : settings) {
    set(true);
    EXPECT_NE(SettingsOf(gpu), plain) << name;
    set(false);
    EXPECT_EQ(SettingsOf(gpu), plain) << name;
  }
}

// Costs that are measured otherwise are others, on each device.
TEST(DeviceDescription, TheVersionOfCostsIsInTheKey) {
  EXPECT_THAT(SettingsOf(FakeGpu()), HasSubstr(" costs=2"));
  EXPECT_THAT(DescribeDevice().math_settings, HasSubstr(" costs=2"));
}

// What a profile may state has a length.
TEST(DeviceDescription, ALongConfigurationOfTheAllocatorCountsWhole) {
  const FakeGpu gpu;
  std::string configuration(2000, 'x');
  setenv("PYTORCH_CUDA_ALLOC_CONF", configuration.c_str(), 1);
  const std::string one = SettingsOf(gpu);
  configuration.back() = 'y';
  setenv("PYTORCH_CUDA_ALLOC_CONF", configuration.c_str(), 1);
  EXPECT_NE(SettingsOf(gpu), one);
  EXPECT_LT(one.size(), 1024U);
  unsetenv("PYTORCH_CUDA_ALLOC_CONF");
}

TEST(DeviceDescription, TheCpusKeyHasNoneOfThem) {
  EXPECT_THAT(DescribeDevice().math_settings, testing::Not(HasSubstr("sdp")));
}

}  // namespace
}  // namespace stowage
