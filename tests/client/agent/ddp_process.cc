// One rank of a job that exchanges gradients by c10d's own Reducer: trains two networks alike, one plainly and one by plans
// that all ranks agree on, and fails unless every step leaves both the same, bit for bit, with buckets in the same order.
//
// usage: ddp_process PLACE RANK RANKS NETWORK BUDGET STEPS [lacks STEP] [dies STEP]
// `lacks`: in that step there is less memory than the plan takes. `dies`: is killed before it. Says in a line what the plan of
// each step takes. Exit code 1: an error, which it has said.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/agent/agent.h"
#include "client/agent/group_agreement.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/memory/tracking_allocator.h"
#include "tests/client/agent/gloo_group.h"
#include "tests/client/torch/test_networks.h"
#include "tests/client/torch/training_outcome.h"

namespace stowage {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;

// So long others wait for a rank that is gone.
constexpr std::chrono::seconds kPatience(60);

// As the Reducer's own, and writes down which bucket goes out.
class NotedAllreduce : public c10d::CommHookInterface {
 public:
  NotedAllreduce(Group group, std::string* log) : group_(std::move(group)), log_(log) {}

  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    absl::StrAppend(log_, bucket.getIndex(), ":", bucket.getBuffer().numel(), " ");
    std::vector<at::Tensor> tensors = {bucket.getBufferRef()};
    tensors.front().div_(group_->getSize());
    return group_->allreduce(tensors)->getFuture();
  }

  at::Tensor parseHookResult(const c10::IValue& result) override {
    return result.isTensor() ? result.toTensor() : result.toTensorVector().front();
  }

 private:
  const Group group_;
  std::string* const log_;
};

// What DistributedDataParallel does around a module.
class Replica {
 public:
  Replica(const ModelTensors& model, const Group& group) {
    for (const at::Tensor& parameter : model.parameters()) {
      if (parameter.requires_grad()) trained_.push_back(parameter);
    }
    const std::vector<at::Tensor> reversed(trained_.rbegin(), trained_.rend());
    std::vector<int64_t> numbers;
    for (size_t i = trained_.size(); i > 0; --i) numbers.push_back(static_cast<int64_t>(i) - 1);
    auto [buckets, limits] = c10d::compute_bucket_assignment_by_size(
        reversed, {kBucketBytes, kBucketBytes}, {}, numbers);
    reducer_ = std::make_unique<c10d::Reducer>(
        trained_, std::move(buckets), std::move(limits), group,
        std::vector<bool>(trained_.size(), false), kBucketBytes, /*find_unused_parameters=*/false,
        /*gradient_as_bucket_view=*/false, std::unordered_map<size_t, std::string>(), kBucketBytes);
    reducer_->register_comm_hook(std::make_unique<NotedAllreduce>(group, &log_));
  }

  // Before a step whose gradients are exchanged; without it, those of its backward only add up.
  void Begin() {
    reducer_->rebuild_buckets();
    reducer_->prepare_for_forward();
    reducer_->prepare_for_backward({});
  }

  void Train() {
    const at::NoGradGuard off;
    for (at::Tensor& parameter : trained_) parameter.sub_(parameter.grad(), 0.05);
  }

  std::string TakeLog() { return std::exchange(log_, ""); }

 private:
  static constexpr size_t kBucketBytes = 1024;

  std::vector<at::Tensor> trained_;
  std::string log_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

struct Job {
  std::string place;
  int rank = 0;
  int ranks = 1;
  std::string network;
  Budget budget;
  int steps = 0;
  int lacks = -1;
  int dies = -1;
};

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

absl::Status Differ(int step, const std::string& what) {
  return absl::InternalError(absl::StrCat("step ", step, ": ", what, " differ"));
}

class Training {
 public:
  Training(const Job& job, const c10::intrusive_ptr<c10d::Store>& store)
      : job_(job),
        group_([&](const char* name) {
          return MakeGlooGroup(store, name, job.rank, job.ranks, kPatience);
        }),
        agreement_(MakeGroupAgreement(group_("agreement")).value()),
        agent_(&planned_.model, Options()) {
    // Each rank has batches of its own.
    at::manual_seed(static_cast<uint64_t>(job.rank) + 1);
    if (plain_.input.is_floating_point()) plain_.input = at::randn_like(plain_.input);
    planned_.input = plain_.input.clone();
  }

  absl::Status Run() {
    const auto plan = agent_.Plan(planned_.input, planned_.target, job_.budget);
    if (!plan.ok()) return plan.status();
    if (plan->plan.status != PlanStatus::kFound) return absl::NotFoundError("there is no plan");
    // Beside the input, between what this plan takes and what the least one does.
    const Bytes input(static_cast<int64_t>(planned_.input.nbytes()));
    lacking_ =
        Bytes((plan->plan.prediction.peak + plan->plan.bounds.least_budget).value() / 2) - input;
    Replica plain(plain_.model, group_("plain"));
    Replica planned(planned_.model, group_("planned"));
    for (int step = 0; step < job_.steps; ++step) {
      if (step == job_.dies) kill(getpid(), SIGKILL);
      const absl::Status status = Step(step, &plain, &planned);
      if (!status.ok()) return status;
    }
    // The rank that ends last closes no connection that others use.
    return agreement_->Gather("done").status();
  }

 private:
  AgentOptions Options() const {
    AgentOptions options;
    options.agreement = agreement_;
    options.report_after = 0;
    options.drift.time = 0;  // of a machine that does other things, too
    return options;
  }

  // In some steps gradients of two batches add up, and are exchanged with the second.
  absl::Status Step(int step, Replica* plain, Replica* planned) {
    plain_.model.ZeroGradients();
    planned_.model.ZeroGradients();
    const int batches = step % 3 == 2 ? 2 : 1;
    for (int batch = 0; batch < batches; ++batch) {
      const bool exchanges = batch == batches - 1;
      const auto seed = static_cast<uint64_t>(100 * step + 10 * batch + job_.rank);
      at::manual_seed(seed);
      if (exchanges) plain->Begin();
      const auto expected = PlainStep(plain_.model, plain_.input, plain_.target);
      if (!expected.ok()) return expected.status();
      const Outcome outcome = Outcome::Of(plain_.model, expected->loss);
      at::manual_seed(seed);
      if (exchanges) planned->Begin();
      const auto got = PlannedStep(exchanges && step == job_.lacks);
      if (!got.ok()) return got.status();
      if (!(outcome == Outcome::Of(planned_.model, got->loss))) return Differ(step, "outcomes");
      const Bytes budget = agent_.memory().budget;
      if (agent_.steps().finished == finished_ && got->peak > budget) {
        return absl::InternalError(absl::StrCat("step ", step, " took ", got->peak.value(), " of ",
                                                budget.value(), " bytes"));
      }
      finished_ = agent_.steps().finished;
    }
    const std::string buckets = plain->TakeLog();
    if (buckets != planned->TakeLog()) return Differ(step, "buckets");
    plain->Train();
    planned->Train();
    Say(absl::StrCat("step ", step, ": plan ", agent_.Token(), " in buckets ", buckets));
    return absl::OkStatus();
  }

  absl::StatusOr<StepReport> PlannedStep(bool lacks) {
    TrackingAllocator* const memory = TrackingAllocator::Get();
    if (lacks) memory->SetLimit(memory->current() + lacking_);
    auto report = agent_.Step(planned_.input, planned_.target);
    memory->ClearLimit();
    if (lacks && agent_.steps().finished != 1) return absl::InternalError("there was memory");
    return report;
  }

  const Job job_;
  const std::function<Group(const char*)> group_;
  const std::shared_ptr<PlanAgreement> agreement_;
  TestNetwork plain_ = MakeTestNetwork(job_.network);
  TestNetwork planned_ = MakeTestNetwork(job_.network);
  Agent agent_;
  Bytes lacking_;
  int64_t finished_ = 0;
};

int Main(int argc, char** argv) {
  if (argc < 7) return 2;
  TrackingAllocator::Install();
  at::set_num_threads(1);
  Job job;
  job.place = argv[1];
  job.rank = std::atoi(argv[2]);
  job.ranks = std::atoi(argv[3]);
  job.network = argv[4];
  job.budget = ParseBudget(argv[5]).value();
  job.steps = std::atoi(argv[6]);
  for (int i = 7; i + 1 < argc; i += 2) {
    (std::string(argv[i]) == "lacks" ? job.lacks : job.dies) = std::atoi(argv[i + 1]);
  }
  absl::Status status;
  try {
    Training training(job, c10::make_intrusive<c10d::FileStore>(job.place + "/store", job.ranks));
    status = training.Run();
  } catch (const std::exception& error) {
    status = absl::UnavailableError(error.what());
  }
  if (!status.ok()) Say(status.ToString());
  // Threads of groups whose other ranks are gone may wait for them yet.
  std::fflush(stdout);
  _exit(status.ok() ? 0 : 1);
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) { return stowage::Main(argc, argv); }
