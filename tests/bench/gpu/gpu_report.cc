// Trains reference networks on a GPU plain and by plans, and appends what was measured, a row at a time: training_rows.h and
// batch_rows.h say what. Steps are independent of each other, and each takes minutes.
#include <ATen/Parallel.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/str_cat.h"
#include "client/torch/memory/tracking_allocator.h"
#include "solvers/base/flag_parser.h"
#include "solvers/model/field_error.h"
#include "tests/bench/gpu/batch_rows.h"
#include "tests/bench/gpu/report_device.h"
#include "tests/bench/gpu/report_row.h"
#include "tests/bench/gpu/training_rows.h"
#include "tests/bench/torch/gain_row.h"
#include "tests/client/torch/autocast.h"

ABSL_FLAG(std::string, step, "", "what to measure, one of --list");
ABSL_FLAG(std::string, device, "cuda",
          "cuda, cuda:N, or test, the test device, which needs no GPU");
ABSL_FLAG(std::string, rows, "gpu_report.jsonl",
          "file that rows are appended to; those that it has are not measured again");
ABSL_FLAG(bool, toy, false, "small networks, and one round of each: to see that all of it runs");
ABSL_FLAG(double, patience_s, 60, "seconds after which a search for a plan is cut off");
ABSL_FLAG(std::string, traces, "", "folder for what the instructions of plans took; empty: none");
ABSL_FLAG(bool, kernels, false,
          "what the GPU did in plain and planned steps, into that folder, too");
ABSL_FLAG(bool, list, false, "prints the steps, one a line, and runs nothing");

namespace stowage {
namespace {

constexpr int kUsageError = 2;

NetworkChoice Images(const std::string& name, int64_t side, int64_t batch, int64_t classes) {
  NetworkChoice choice;
  choice.name = name;
  choice.image = side;
  choice.batch = batch;
  choice.classes = classes;
  return choice;
}

// Layers, width and heads of GPT-2 medium, without its embedding of positions and its dropout.
NetworkChoice Decoder() {
  NetworkChoice choice;
  choice.name = kDecoder;
  choice.batch = 16;
  choice.decoder.layers = 24;
  choice.decoder.width = 1024;
  choice.decoder.heads = 16;
  choice.decoder.length = 1024;
  choice.decoder.vocabulary = 50257;
  choice.decoder.fused_attention = true;
  return choice;
}

NetworkChoice ToyDecoder(int64_t layers, bool fused_attention) {
  NetworkChoice choice;
  choice.name = kDecoder;
  choice.batch = 4;
  choice.decoder.layers = layers;
  choice.decoder.width = 16;
  choice.decoder.heads = 2;
  choice.decoder.length = 32;
  choice.decoder.vocabulary = 50;
  choice.decoder.fused_attention = fused_attention;
  return choice;
}

constexpr Bytes Mebibytes(int64_t number) { return Bytes(number << 20); }

// What stands for each where it is to be seen that all of it runs: on the test device an operation of a large network takes as
// long as on a GPU a step.
std::vector<ReportedNetwork> ToyNetworks() {
  return {{"resnet50", Images("resnet18", 32, 2, 10), Form::kChain, Mebibytes(184)},
          {"resnet152", ToyDecoder(4, false), Form::kChain, Mebibytes(23)},
          {"densenet201", ToyDecoder(5, false), Form::kChain, Mebibytes(23)},
          {"decoder_sdpa", ToyDecoder(3, true), Form::kChain, Mebibytes(23)},
          {"nasnet", ToyDecoder(2, false), Form::kGraph, Mebibytes(23)}};
}

std::vector<ReportedNetwork> Networks(bool toy) {
  if (toy) return ToyNetworks();
  return {{"resnet50", Images("resnet50", 224, 64, 1000)},
          {"resnet152", Images("resnet152", 224, 64, 1000)},
          {"densenet201", Images("densenet201", 224, 64, 1000)},
          {"decoder_sdpa", Decoder(), Form::kChain, Bytes(0), /*autocast=*/true},
          {"nasnet", Images("nasnet_a", 32, 256, 10), Form::kGraph}};
}

ReportEffort Effort(bool toy) {
  ReportEffort effort;
  effort.patience = std::chrono::milliseconds(std::llround(absl::GetFlag(FLAGS_patience_s) * 1000));
  effort.traces = absl::GetFlag(FLAGS_traces);
  effort.trace_kernels = absl::GetFlag(FLAGS_kernels);
  if (!toy) return effort;
  effort.warmups = 0;
  effort.rounds = effort.repeats = effort.transfers.repeats = 1;
  effort.transfers.largest = Mebibytes(1);
  // Small copies say little of a link, beside other work nothing.
  const CopyCost cost{int64_t{4} << 30, Nanos(10000)};
  effort.assumed_link =
      MeasuredTransfers{{cost, cost, /*full_duplex=*/true, Bytes(0)}, 0, 0, 0.5, 0};
  return effort;
}

struct ReportStep {
  std::string name;
  std::function<absl::Status(ReportDevice* device, ReportFile* file)> run;
};

absl::Status AddGainRow(const ReportedNetwork& network, const ReportEffort& effort,
                        ReportDevice* device, ReportFile* file) {
  const std::string id = absl::StrCat(network.name, "/gain");
  if (file->Has(id)) return absl::OkStatus();
  const CopyCost cost{int64_t{1} << 30, Nanos(0)};
  const auto made = device->Make({cost, cost, /*full_duplex=*/true, Bytes(0)});
  if (!made.ok()) return made.status();
  GainOptions options;
  options.repeats = effort.repeats;
  options.screenings = effort.rounds < options.screenings ? 1 : options.screenings;
  options.rounds = effort.rounds;
  options.device = made->get();
  const absl::StatusOr<GainRow> gain = MeasureGain(network.choice, options);
  if (!gain.ok()) return file->AppendError(id, gain.status());
  ReportRow row(id);
  row.Add("segments", int64_t{gain->segments}).Add("memory", gain->memory);
  row.Add("plain_memory", gain->plain_memory).Add("step", gain->step);
  row.Add("over_plain", gain->over_plain).Add("optimal_gain", gain->optimal.wall.median);
  row.Add("optimal_modelled", gain->optimal.modelled);
  row.Add("planner_gain", gain->choice_of_planner.wall.median);
  row.Add("planner_modelled", gain->choice_of_planner.modelled);
  return file->Append(row);
}

template <class Run>
ReportStep StepOf(const ReportedNetwork& network, const std::string& what, const Run& run) {
  return {network.name + what, [=](ReportDevice* device, ReportFile* file) {
            const ScopedAutocast scope(network.autocast && device->is_gpu(),
                                       /*remember_casts=*/false, c10::DeviceType::CUDA);
            return run(network, device, file);
          }};
}

std::vector<ReportStep> Steps(bool toy) {
  const ReportEffort effort = Effort(toy);
  std::vector<ReportStep> steps = {{"link", [=](ReportDevice* device, ReportFile* file) {
                                      return AddLinkRow(effort, device, file);
                                    }}};
  const auto rows = [effort](const auto& add) {
    return [=](const ReportedNetwork& network, ReportDevice* device, ReportFile* file) {
      return add(network, effort, device, file);
    };
  };
  for (const ReportedNetwork& network : Networks(toy)) {
    steps.push_back(StepOf(network, "", rows(&AddTrainingRows)));
    if (network.form == Form::kChain) steps.push_back(StepOf(network, ".gain", rows(&AddGainRow)));
    steps.push_back(StepOf(network, ".batch", rows(&AddBatchRows)));
  }
  return steps;
}

absl::Status Run() {
  const std::string name = absl::GetFlag(FLAGS_step);
  for (const ReportStep& step : Steps(absl::GetFlag(FLAGS_toy))) {
    if (step.name != name) continue;
    absl::StatusOr<ReportFile> file = ReportFile::Open(absl::GetFlag(FLAGS_rows));
    if (!file.ok()) return file.status();
    const auto device = ReportDeviceNamed(absl::GetFlag(FLAGS_device));
    if (!device.ok()) return device.status();
    absl::Status status = step.run(device->get(), &*file);
    if (!status.ok()) return status;
    return file->errors() == 0 ? absl::OkStatus()
                               : absl::InternalError(absl::StrCat(file->errors(), " rows failed"));
  }
  return FieldError("--step", name, "must be one of --list");
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::string> flags = {"step",       "device", "rows",    "toy",
                                          "patience_s", "traces", "kernels", "list"};
  const absl::StatusOr<bool> help = ParseFlags(arguments, flags);
  if (help.ok() && *help) {
    std::printf("usage: gpu_report --step=STEP [flags]\n\n%s", FlagHelp(flags).c_str());
    return 0;
  }
  if (help.ok() && absl::GetFlag(FLAGS_list)) {
    for (const ReportStep& step : Steps(absl::GetFlag(FLAGS_toy))) {
      std::printf("%s\n", step.name.c_str());
    }
    return 0;
  }
  TrackingAllocator::Install();
  at::set_num_threads(1);
  const absl::Status status = help.ok() ? Run() : help.status();
  if (status.ok()) return 0;
  std::fprintf(stderr, "gpu_report: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kUsageError : 1;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  return stowage::Main(std::vector<std::string>(argv + 1, argv + argc));
}
