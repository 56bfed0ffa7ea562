#include "client/cli/training_commands.h"

#include "absl/flags/flag.h"
#include "client/cli/script_flags.h"
#include "client/rpc/server_flags.h"

ABSL_FLAG(uint64_t, seed, 0, "seed of parameters and samples");
ABSL_FLAG(int, threads, 0, "threads of LibTorch; 0 leaves it to LibTorch");
ABSL_FLAG(int, repeats, 5, "passes that the times of a profile are the medians of");
ABSL_FLAG(bool, calibrate, true,
          "scale the times of a profile to those of whole steps, which store all activations");
ABSL_FLAG(int, steps, 3, "training steps per budget");
ABSL_FLAG(bool, arena, false, "serve steps by plans from one reserved region");
ABSL_FLAG(std::string, link, "",
          "simulated link to host memory that plans may use, \"GB/s[:latency]\", say \"12:10us\"; "
          "empty: none");
ABSL_FLAG(
    std::string, trace, "",
    "file for what the last step within a budget took, instruction by instruction; of several "
    "budgets FILE.1, FILE.2 and so on; empty: none");

namespace stowage {
namespace {

// Of run and verify.
std::vector<std::string> TrainingFlags() {
  return WithServerFlags({"model",   "graph",   "batch",  "image_size", "classes", "length",
                          "script",  "input",   "loss",   "device",     "seed",    "threads",
                          "repeats", "profile", "steps",  "budgets",    "solver",  "slots",
                          "link",    "timeout", "format", "arena",      "trace"});
}

Command Training(Command command) {
  command.defaults = TrainingDeviceDefault();
  command.meanings = TrainingDeviceMeaning();
  return command;
}

}  // namespace

Command ProfileCommand(const TrainingRuns& runs) {
  return Training({"profile",
                   "measure what every stage of a network costs in time and bytes",
                   {"model", "graph", "batch", "image_size", "classes", "length", "script", "input",
                    "loss", "device", "seed", "threads", "repeats", "calibrate", "out"},
                   runs.profile,
                   {"profile --model=resnet18 --image_size=128 --out=p.json",
                    "profile --model=resnet18 --image_size=64 --graph > graph.json",
                    "profile --script=net.pt --input=2x3x16x16 > net.json"}});
}

Command RunCommand(const TrainingRuns& runs) {
  return Training({"run",
                   "train a network without a budget and within budgets, and compare",
                   TrainingFlags(),
                   runs.run,
                   {"run --model=resnet18 --image_size=128 --budgets=80%,least",
                    "run --model=resnet18 --image_size=64 --budgets=least --steps=2 --format=csv",
                    "run --script=net.pt --input=2x3x16x16 --budgets=least"}});
}

Command VerifyCommand(const TrainingRuns& runs) {
  return Training({"verify",
                   "prove that training by plans is plain training, bit for bit",
                   TrainingFlags(),
                   runs.verify,
                   {"verify --model=resnet18 --image_size=64 --budgets=100%,least",
                    "verify --model=resnet18 --image_size=64 --graph --budgets=least --format=json",
                    "verify --script=net.pt --input=2x3x16x16 --budgets=least"}});
}

}  // namespace stowage
