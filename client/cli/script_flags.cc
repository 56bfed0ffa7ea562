#include "client/cli/script_flags.h"

#include "absl/flags/flag.h"
#include "absl/flags/reflection.h"
#include "absl/strings/str_cat.h"
#include "solvers/base/flag_parser.h"
#include "solvers/model/field_error.h"

ABSL_FLAG(std::string, script, "",
          "your own network, a file of torch.jit.save: trained in place of --model, as a graph");
ABSL_FLAG(std::string, input, "",
          "shapes of what the network of --script takes, with commas between, and their types if "
          "they are not float32: \"8x3x224x224\", \"8x3x224x224:bfloat16\", "
          "\"8x128:int64<30522\" (ids below 30522)");
ABSL_FLAG(std::string, loss, "cross_entropy",
          "what the network of --script is trained by, against a random target: cross_entropy, mse "
          "or sum");
ABSL_FLAG(std::string, device, "a100",
          "kind of device that costs are modelled on, a wrong name lists them all; where a command "
          "trains, cpu or cuda[:n]");

namespace stowage {
namespace {

absl::Status NotFor(const char* flag, const std::string& rule) {
  return FieldError(absl::StrCat("--", flag), absl::FindCommandLineFlag(flag)->CurrentValue(),
                    rule);
}

}  // namespace

std::vector<FlagValue> TrainingDeviceDefault() { return {{"device", "cpu"}}; }

std::vector<FlagValue> TrainingDeviceMeaning() {
  return {{"device", "where to train: cpu, or cuda or cuda:1 for a GPU"}};
}

absl::Status CheckScriptFlags() {
  if (absl::GetFlag(FLAGS_script).empty()) {
    for (const char* flag : {"input", "loss"}) {
      if (IsFlagGiven(flag)) {
        return NotFor(flag, "is for --script: reference networks have inputs and a loss");
      }
    }
    return absl::OkStatus();
  }
  for (const char* flag : {"model", "graph", "batch", "image_size", "classes", "length"}) {
    if (IsFlagGiven(flag)) {
      return NotFor(flag, "is for reference networks: --script is what its file says, on --input");
    }
  }
  if (!absl::GetFlag(FLAGS_input).empty()) return absl::OkStatus();
  return FieldError("--input", "\"\"",
                    "must be the shape of each input of --script, such as 8x3x224x224");
}

}  // namespace stowage
