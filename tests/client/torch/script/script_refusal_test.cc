// What the TorchScript importer refuses, and what it then says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "client/torch/base/rethrow_as_thrown.h"
#include "client/torch/script/script_model.h"
#include "tests/client/torch/script/scripted_modules.h"

namespace stowage {
namespace {

using testing::HasSubstr;

// Of two threads that run scripts the first to end leaves the other's errors as they are.
TEST(RethrowAsThrown, TheLastPutsTheSwitchBack) {
  const bool before = FLAGS_torch_jit_enable_rethrow_caught_exception;
  auto first = std::make_unique<RethrowAsThrown>();
  auto second = std::make_unique<RethrowAsThrown>();
  first.reset();
  EXPECT_TRUE(FLAGS_torch_jit_enable_rethrow_caught_exception);
  second.reset();
  EXPECT_EQ(FLAGS_torch_jit_enable_rethrow_caught_exception, before);
}

struct Refused {
  std::string name;
  std::string source;
  std::vector<std::string> says;
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

class ScriptRefusalTest : public testing::TestWithParam<Refused> {};

TEST_P(ScriptRefusalTest, NamesTheOpAndTheRule) {
  const absl::Status status =
      ImportScript(MakeScripted(GetParam().source), GetParam().name).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  for (const std::string& part : GetParam().says) {
    EXPECT_THAT(std::string(status.message()), HasSubstr(part));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sources, ScriptRefusalTest,
    testing::Values(
        Refused{"BranchByData",
                "def forward(self, x):\n  x = x * self.w\n  if bool(x.sum() > 0):\n    x = -x\n"
                "  return x\n",
                {"prim::If", "what a tensor holds decides it", "aten::Bool"}},
        Refused{
            "LoopByData",
            "def forward(self, x):\n  for i in range(int(x[0, 0].item())):\n    x = x * self.w\n"
            "  return x\n",
            {"prim::Loop", "what a tensor holds decides it"}},
        Refused{"WhileByData",
                "def forward(self, x):\n  while bool(x.sum() > 0):\n    x = x - self.w\n"
                "  return x\n",
                {"prim::Loop", "what a tensor holds decides it"}},
        Refused{"BranchByGradient",
                "def forward(self, x):\n  if x.requires_grad:\n    x = x * self.w\n  return x\n",
                {"requires_grad", "asks for gradients"}},
        Refused{"SetsAttribute",
                "def forward(self, x):\n  self.seen = self.seen + 1\n  return x * self.w\n",
                {"prim::SetAttr", "'seen'"}},
        Refused{"ReadsListOfParameters",
                "def forward(self, x):\n  return x * self.some[0]\n",
                {"prim::GetAttr", "'some'", "Tensor[]"}},
        Refused{"WritesInput",
                "def forward(self, x):\n  x.view([-1]).add_(1)\n  return x * self.w\n",
                {"aten::add_", "may write over input 0 (x"}},
        Refused{"WritesParameter",
                "def forward(self, x):\n  self.w.mul_(2)\n  return x * self.w\n",
                {"aten::mul_", "parameter 'w'"}},
        Refused{"ReshapesInPlace",
                "def forward(self, x):\n  y = x * self.w\n  y.unsqueeze_(0)\n  return y\n",
                {"aten::unsqueeze_", "otherwise than by writing"}},
        Refused{"TakesNumber",
                "def forward(self, x, n: int):\n  return x * self.w * n\n",
                {"input 1 (n", "int", "must be tensors"}},
        Refused{"ReturnsDict",
                "def forward(self, x):\n  return {'y': x * self.w}\n",
                {"forward returns a Dict"}},
        Refused{"ReturnsNumber",
                "def forward(self, x):\n  return (x * self.w, x.size(0))\n",
                {"forward returns a int"}},
        Refused{"ReturnsParameter",
                "def forward(self, x):\n  return (x * self.w, self.w)\n",
                {"which is a parameter"}},
        Refused{"ReturnsSplit",
                "def forward(self, x):\n  a, b = torch.chunk(x * self.w, 2)\n  return (a, b)\n",
                {"aten::chunk", "no cut leaves exactly one tensor", "2 are in use"}}),
    [](const auto& refused) { return refused.param.name; });

TEST(ScriptRefusal, SaysWhereInTheSourceARefusedOpIs) {
  const absl::Status status =
      ImportScript(MakeScripted("def forward(self, x):\n  self.w.mul_(2)\n  return x * self.w\n"),
                   "net")
          .status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("aten::mul_ at <string>:2:"));
}

TEST(ScriptRefusal, WhatIsNoModuleIsInvalid) {
  const absl::Status status = ImportScriptFile("/no/such/file.pt").status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("/no/such/file.pt"));
  const absl::Status bare = ImportScript(torch::jit::Module("__torch__.Bare"), "bare").status();
  EXPECT_TRUE(absl::IsInvalidArgument(bare)) << bare;
}

}  // namespace
}  // namespace stowage
