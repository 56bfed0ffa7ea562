#include "client/torch/model/model_state.h"

#include <ATen/Functions.h>
#include <c10/core/GeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstring>

#include "client/torch/base/torch_version.h"
#include "tests/client/device/training_devices.h"

namespace stowage {
namespace {

// Of a device that is nowhere here: seed and offset, as those of GPUs, and what was done to them.
class CountingGenerator final : public c10::GeneratorImpl {
 public:
  explicit CountingGenerator(c10::Device device)
      : c10::GeneratorImpl(device, c10::DispatchKeySet(c10::DispatchKey::CPU)) {}

  void Draw() { numbers_[1] += 4; }

  // A library that keeps state by seed draws it anew then.
  void set_current_seed(uint64_t seed) override {
    ++seeded;
    numbers_[0] = seed;
    numbers_[1] = 0;
  }
  uint64_t current_seed() const override {
    ++looked_at;
    return numbers_[0];
  }
  uint64_t seed() override { return numbers_[0]; }
#if STOWAGE_TORCH_AT_LEAST(2, 1)
  void set_offset(uint64_t offset) override {
    ++put_back;
    numbers_[1] = offset;
  }
  uint64_t get_offset() const override { return numbers_[1]; }
#endif
  void set_state(const c10::TensorImpl& state) override {
    ++put_back;
    std::memcpy(numbers_, state.data(), sizeof(numbers_));
  }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override {
    ++looked_at;
    at::Tensor state = at::empty({sizeof(numbers_)}, at::kByte);
    std::memcpy(state.data_ptr(), numbers_, sizeof(numbers_));
    return state.getIntrusivePtr();
  }

  int seeded = 0;
  int put_back = 0;
  mutable int looked_at = 0;

 private:
  CountingGenerator* clone_impl() const override { return new CountingGenerator(device()); }

  uint64_t numbers_[2] = {1, 0};
};

CountingGenerator& GeneratorOn(c10::Device device) {
  const at::Generator generator = at::make_generator<CountingGenerator>(device);
  RandomState::UseGenerator(generator);
  return *static_cast<CountingGenerator*>(generator.unsafeGetGeneratorImpl());
}

// A job has one device of several, and other generators may be other processes' or not even there yet.
TEST(RandomStateTest, OnlyTheDevicesOwnGeneratorIsAskedAndSet) {
  const c10::Device device(c10::DeviceType::XLA, 1);
  CountingGenerator& same_type = GeneratorOn({c10::DeviceType::XLA, 0});
  CountingGenerator& own = GeneratorOn(device);
  CountingGenerator& other = GeneratorOn({c10::DeviceType::HPU, 1});
  const RandomState before = RandomState::Capture(device);
  own.Draw();
  EXPECT_TRUE(RandomState::Capture(device) != before);
  before.Restore();
  EXPECT_TRUE(RandomState::Capture(device) == before);
  EXPECT_EQ(own.put_back, 1);
  for (const CountingGenerator* const not_asked : {&same_type, &other}) {
    EXPECT_EQ(not_asked->looked_at + not_asked->put_back + not_asked->seeded, 0);
  }
}

TEST(RandomStateTest, ASeedThatIsTheSameIsNotSetAnew) {
  const c10::Device device(c10::DeviceType::IPU, 0);
  CountingGenerator& own = GeneratorOn(device);
  const RandomState before = RandomState::Capture(device);
  own.Draw();
  before.Restore();
  EXPECT_EQ(own.seeded, 0);
  own.set_current_seed(9);
  before.Restore();
  EXPECT_TRUE(RandomState::Capture(device) == before);
}

class ModelStateTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_IF_MISSING(device_); }

  const TrainingDevice& device_ = TrainingDeviceNamed(GetParam());
};

TEST_P(ModelStateTest, RandomNumbersComeAgain) {
  const RandomState before = RandomState::Capture(device_.device);
  const at::Tensor first = torch::rand({100}, device_.device);
  const at::Tensor on_host = torch::rand({100});
  EXPECT_TRUE(RandomState::Capture(device_.device) != before);
  before.Restore();
  EXPECT_TRUE(at::equal(torch::rand({100}, device_.device), first));
  EXPECT_TRUE(at::equal(torch::rand({100}), on_host) || device_.device.is_cpu());
}

TEST_P(ModelStateTest, BuffersComeBackAndTakeNoneOfTheDevicesMemory) {
  const std::vector<at::Tensor> buffers = {torch::randn({6, 5}).to(device_.device),
                                           torch::randn({4, 3}).t().to(device_.device)};
  const at::Tensor first = buffers[0].clone(), second = buffers[1].clone();
  const Bytes live = device_.meter()->current();
  const BufferState before = BufferState::Capture(buffers);
  EXPECT_EQ(device_.meter()->current(), live);
  const auto version = buffers[0]._version();
  {
    const torch::NoGradGuard no_grad;
    buffers[1].mul_(2);
  }
  buffers[0].data().add_(1);
  EXPECT_TRUE(BufferState::Capture(buffers) != before);
  before.Restore();
  EXPECT_TRUE(BufferState::Capture(buffers) == before);
  EXPECT_TRUE(at::equal(buffers[0], first) && at::equal(buffers[1], second));
  EXPECT_EQ(buffers[0]._version(), version);
}

// Written to memory that is there no more, the old contents would be anybody's.
TEST(BufferStateTest, ABufferOfAnotherSizeIsRefused) {
  at::Tensor buffer = torch::ones({4});
  const BufferState before = BufferState::Capture({torch::zeros({2}), buffer});
  buffer.set_data(torch::ones({3}));
  EXPECT_TRUE(BufferState::Capture({torch::zeros({2}), buffer}) != before);
  EXPECT_THROW(before.Restore(), c10::Error);
}

INSTANTIATE_TEST_SUITE_P(Devices, ModelStateTest, testing::Values("cpu", "test", "cuda"),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace stowage
