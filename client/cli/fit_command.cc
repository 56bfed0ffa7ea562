// stowage fit: will it fit, and which batch is best, before anything is launched.
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "client/cli/batch_fitting.h"
#include "client/cli/catalogue_flags.h"
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "client/cli/fit_text.h"
#include "client/cli/modelled_network.h"
#include "client/cli/network_flags.h"
#include "client/cli/plan_flags.h"
#include "client/cli/profile_file.h"
#include "client/cli/progress_line.h"
#include "client/cli/script_flags.h"
#include "client/cli/ticking_line.h"
#include "solvers/batch/fit_batch.h"
#include "solvers/model/field_error.h"
#include "solvers/planner.h"
#include "solvers/zoo/networks.h"

ABSL_FLAG(std::string, batches, "",
          "batch sizes of --profiles, two or more of one network, in their order; separated by "
          "commas");
ABSL_FLAG(std::string, memory, "",
          "of the device, what the job may use (\"40GiB\"); empty: that of the kind, or of the "
          "profiles' device");
ABSL_FLAG(std::string, parameters, "",
          "bytes of the parameters, where --profiles does not tell (\"100MiB\")");
ABSL_FLAG(std::string, optimizer, "sgd",
          "what is kept beside parameters and gradients: none, sgd (nothing), momentum (once the "
          "parameters) or adam (twice)");
ABSL_FLAG(std::string, reserved, "5%",
          "of the memory, for the framework's context and what the allocator cannot hand out: "
          "bytes, or a share of the device");
ABSL_FLAG(bool, offload, false,
          "let plans copy to host memory over the device's link, too: slower to find");
ABSL_FLAG(int64_t, max_batch, 65536, "no larger batch is looked at");

namespace stowage {
namespace {

// What batches are looked for of, and what is known of it.
struct Subject {
  std::unique_ptr<BatchSource> source;
  ModelBytes model;
  Bytes memory;  // of the device; 0: not known
  FitTitle title;
};

absl::StatusOr<Bytes> ParseBytes(const std::string& flag, const std::string& text) {
  const absl::StatusOr<Budget> parsed = ParseBudget(text);
  const Bytes* bytes = parsed.ok() ? std::get_if<Bytes>(&*parsed) : nullptr;
  return bytes != nullptr ? absl::StatusOr<Bytes>(*bytes)
                          : FieldError(flag, text, "must be bytes, such as 40GiB");
}

absl::StatusOr<OptimizerKind> ParseOptimizer(const std::string& text) {
  if (text == "none" || text == "sgd") return OptimizerKind::kSgd;
  if (text == "momentum") return OptimizerKind::kMomentum;
  if (text == "adam") return OptimizerKind::kAdam;
  return FieldError("--optimizer", text, "must be none, sgd, momentum or adam");
}

std::string SampleText(const NetworkOptions& network) {
  if (IsDecoder(network.name)) return absl::StrCat("sequences of ", network.length, " tokens");
  return absl::StrCat(network.image, "x", network.image, ", ", network.classes, " classes");
}

absl::StatusOr<Subject> SubjectFromModel() {
  const NetworkOptions network{absl::GetFlag(FLAGS_model), absl::GetFlag(FLAGS_image_size), 1,
                               absl::GetFlag(FLAGS_classes), absl::GetFlag(FLAGS_length)};
  const absl::StatusOr<DeviceKind> kind = FindDeviceKind(absl::GetFlag(FLAGS_device));
  if (!kind.ok()) return kind.status();
  auto modelled = std::make_unique<ModelledNetwork>(network, *kind);
  const absl::StatusOr<ModelBytes> bytes = modelled->ModelSize();
  if (!bytes.ok()) return bytes.status();
  Subject subject;
  subject.source = std::move(modelled);
  subject.model = *bytes;
  subject.memory = kind->model.memory;
  subject.title = {
      network.name,
      absl::StrCat(SampleText(network), ", on ", kind->name, " (", kind->description, ")"),
      kind->name, /*modelled=*/true};
  return subject;
}

absl::StatusOr<BatchProfile> ReadBatchProfile(const std::string& batch, const std::string& path) {
  int64_t size = 0;
  if (!absl::SimpleAtoi(batch, &size)) {
    return FieldError("--batches", batch, "must be a number");
  }
  absl::StatusOr<Profile> profile = ReadProfile(path);
  if (!profile.ok()) return profile.status();
  return BatchProfile{size, *std::move(profile)};
}

absl::StatusOr<Subject> SubjectFromProfiles() {
  std::vector<BatchProfile> profiles;
  bool modelled = false;
  const std::vector<std::string> paths = PartsOf(absl::GetFlag(FLAGS_profiles));
  const std::vector<std::string> batches = PartsOf(absl::GetFlag(FLAGS_batches));
  if (paths.size() != batches.size() || paths.empty()) {
    return FieldError("--batches", absl::GetFlag(FLAGS_batches),
                      "must be as many batch sizes as --profiles has files");
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    absl::StatusOr<BatchProfile> one = ReadBatchProfile(batches[i], paths[i]);
    if (!one.ok()) return one.status();
    modelled |= one->profile.cost_source == CostSource::kModelled;
    profiles.push_back(*std::move(one));
  }
  const Profile first = profiles.front().profile;
  absl::StatusOr<BatchModel> model = BatchModel::Create(std::move(profiles));
  if (!model.ok()) return model.status();
  Subject subject;
  subject.source = std::make_unique<BatchModel>(*std::move(model));
  subject.memory = first.device.memory;
  subject.title = {first.name, absl::StrCat("from profiles of ", first.device.model), "", modelled};
  return subject;
}

absl::StatusOr<DeviceLimit> LimitFromFlags(Bytes memory) {
  DeviceLimit limit;
  limit.memory = memory;
  const std::string text = absl::GetFlag(FLAGS_memory);
  if (!text.empty()) {
    const absl::StatusOr<Bytes> bytes = ParseBytes("--memory", text);
    if (!bytes.ok()) return bytes.status();
    limit.memory = *bytes;
  }
  if (limit.memory == Bytes(0)) {
    return FieldError("--memory", "\"\"", "must be set: the profiles do not say their device's");
  }
  const absl::StatusOr<OptimizerKind> optimizer = ParseOptimizer(absl::GetFlag(FLAGS_optimizer));
  if (!optimizer.ok()) return optimizer.status();
  limit.optimizer = *optimizer;
  const absl::StatusOr<Budget> reserved = ParseBudget(absl::GetFlag(FLAGS_reserved));
  if (!reserved.ok()) return reserved.status();
  limit.reserve = 0;
  if (const Bytes* bytes = std::get_if<Bytes>(&*reserved)) {
    limit.other = *bytes;
  } else if (const auto* share = std::get_if<ShareOfStoreAll>(&*reserved)) {
    limit.reserve = share->share;
  } else {
    return FieldError("--reserved", "least", "must be bytes or a share");
  }
  return limit;
}

absl::StatusOr<Subject> SubjectFromFlags() {
  if (absl::GetFlag(FLAGS_profiles).empty()) return SubjectFromModel();
  absl::StatusOr<Subject> subject = SubjectFromProfiles();
  const std::string text = absl::GetFlag(FLAGS_parameters);
  if (!subject.ok() || text.empty()) return subject;
  const absl::StatusOr<Bytes> bytes = ParseBytes("--parameters", text);
  if (!bytes.ok()) return bytes.status();
  subject->model.parameters = subject->model.trained = *bytes;
  return subject;
}

absl::StatusOr<BatchFitting> Fit(const Subject& subject, Bytes budget, int64_t asked) {
  const int64_t max_batch = absl::GetFlag(FLAGS_max_batch);
  const absl::StatusOr<BatchBounds> bounds = MakeBatchBounds(budget, Bytes(0), max_batch);
  if (!bounds.ok()) return bounds.status();
  const absl::StatusOr<std::vector<NetworkCatalogue>> catalogue = CatalogueFromFlag();
  if (!catalogue.ok()) return catalogue.status();
  absl::StatusOr<CallOptions> call = CallOptionsFromFlags();
  if (!call.ok()) return call.status();
  // Its plans copy nothing, and are not those of a solver that somebody asks for.
  const bool asks = !absl::GetFlag(FLAGS_offload) && absl::GetFlag(FLAGS_solver).empty();
  const auto known = [&](const Profile& profile) -> absl::StatusOr<std::optional<Plan>> {
    if (!asks) return std::optional<Plan>();
    return PlanFromCatalogue(*catalogue, subject.title.device, profile, budget);
  };
  TickingLine line(TerminalOrNull(), absl::StrCat("fitting ", subject.title.name), call->deadline);
  const StopToken stop(call->deadline);
  const auto solve = [&](const Profile& profile) {
    PlanOptions options;
    options.solver = absl::GetFlag(FLAGS_solver);
    options.solve.slots = absl::GetFlag(FLAGS_slots);
    options.solve.stop = &stop;
    options.recompute_only = !absl::GetFlag(FLAGS_offload);
    return MakePlan(profile, budget, options);
  };
  return FitBatches(*subject.source, budget, bounds->max_batch, asked, known, solve);
}

int RunFit() {
  const absl::StatusOr<Format> format = FormatFromFlag();
  if (!format.ok()) return Fail(format.status());
  const int64_t asked = absl::GetFlag(FLAGS_batch);
  if (asked < 0) return Fail(FieldError("--batch", asked, "must be >= 0"));
  const absl::StatusOr<Subject> subject = SubjectFromFlags();
  if (!subject.ok()) return Fail(subject.status());
  const absl::StatusOr<DeviceLimit> limit = LimitFromFlags(subject->memory);
  if (!limit.ok()) return Fail(limit.status());
  const absl::StatusOr<DeviceBudget> budget = SubtractFrom("device", *limit, subject->model);
  if (!budget.ok()) return Fail(budget.status());
  const absl::StatusOr<BatchFitting> fitting = Fit(*subject, budget->activations, asked);
  if (!fitting.ok()) return Fail(fitting.status());
  std::cout << FitReport(subject->title, *budget, *fitting, asked, *format);
  return Fits(*fitting, asked) ? kExitOk : kExitInfeasible;
}

}  // namespace

Command FitCommand() {
  Command command{"fit",
                  "which batches fit a device, plain and by plans, and which is fastest",
                  {"model", "image_size", "classes", "length", "device", "profiles", "batches",
                   "memory", "parameters", "optimizer", "reserved", "batch", "max_batch", "solver",
                   "slots", "offload", "catalogue", "timeout", "format"},
                  RunFit,
                  {"fit --model=resnet50 --device=v100",
                   "fit --model=vgg16 --device=t4 --optimizer=adam --batch=64",
                   "fit --model=gpt2 --length=512 --device=v100 --optimizer=adam"}};
  command.defaults = {{"batch", "0"}, {"slots", "500"}, {"timeout", "10m"}};
  return command;
}

}  // namespace stowage
