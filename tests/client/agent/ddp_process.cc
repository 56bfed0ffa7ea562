// One rank of jobs that exchange gradients by c10d's own Reducer: each trains two networks alike, one plainly and one by plans
// that all ranks agree on, and fails unless every step leaves both the same, bit for bit, with buckets in the same order.
//
// usage: ddp_process PLACE RANK RANKS JOB...
// A job is "NETWORK SHARES STEPS PATIENCE [FAULT RANK STEP STAGE]", in a process of its own. SHARES: of what plain training takes, by
// which it trains in turn, as "1,0.7,least"; each rank asks for 0.02 less than the one before it. PATIENCE: seconds that others
// wait for a rank. On that rank, in that step, FAULT is
//   forward, recompute, backward: memory runs out there, in that stage (network "faults")
//   lacks: less memory than the plan takes
//   kill, term: the signal; stops: it stands still until another one gives up
//   slow: it sleeps a while in each step from there on
//   larger, smaller: a batch of another size
//   server, from the start: there is none where this rank looks for it
// Says what the plan of each step is, and at the end of a job how it ended: "job 0: ended", or the error or signal.
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <signal.h>
#include <sys/wait.h>
#include <torch/nn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/agent/agent.h"
#include "client/agent/group_agreement.h"
#include "client/models/models.h"
#include "client/torch/execute/plain_step.h"
#include "client/torch/memory/tracking_allocator.h"
#include "client/torch/model/model_state.h"
#include "tests/client/agent/gloo_group.h"
#include "tests/client/torch/test_networks.h"

namespace stowage {
namespace {

using Group = c10::intrusive_ptr<c10d::ProcessGroup>;
using std::chrono::seconds;

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
    int64_t bytes = 0;
    for (const at::Tensor& parameter : model.parameters()) {
      if (!parameter.requires_grad()) continue;
      trained_.push_back(parameter);
      bytes += static_cast<int64_t>(parameter.nbytes());
    }
    // Several in a step.
    const auto in_bucket = static_cast<size_t>(std::max<int64_t>(bytes / 6, 1024));
    const std::vector<at::Tensor> reversed(trained_.rbegin(), trained_.rend());
    std::vector<int64_t> numbers;
    for (size_t i = trained_.size(); i > 0; --i) numbers.push_back(static_cast<int64_t>(i) - 1);
    auto [buckets, limits] =
        c10d::compute_bucket_assignment_by_size(reversed, {in_bucket, in_bucket}, {}, numbers);
    reducer_ = std::make_unique<c10d::Reducer>(
        trained_, std::move(buckets), std::move(limits), group,
        std::vector<bool>(trained_.size(), false), static_cast<int64_t>(in_bucket),
        /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/false,
        std::unordered_map<size_t, std::string>(), static_cast<int64_t>(in_bucket));
    reducer_->register_comm_hook(std::make_unique<NotedAllreduce>(group, &log_));
  }

  // Before a step whose gradients are exchanged; without it, those of its backward only add up (no_sync).
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
  std::vector<at::Tensor> trained_;
  std::string log_;
  std::unique_ptr<c10d::Reducer> reducer_;
};

// Memory that runs out in a stage, at one of its forwards or in its backward.
struct Fault {
  int forward = 0;  // 1: the first one from now on
  bool backward = false;
  int forwards = 0;  // in this step
};

[[noreturn]] void RunOut() { C10_THROW_ERROR(OutOfMemoryError, "the test has no memory"); }

at::Tensor Faulty(torch::nn::Linear in, torch::nn::Linear out, Fault* fault, const at::Tensor& x) {
  at::Tensor hidden = in(x).tanh();
  ++fault->forwards;
  if (fault->forward > 0 && --fault->forward == 0) RunOut();
  if (hidden.requires_grad() && fault->backward) {
    hidden.register_hook([fault](const at::Tensor& gradient) {
      if (std::exchange(fault->backward, false)) RunOut();
      return gradient;
    });
  }
  return x + out(hidden).sin();
}

constexpr int kFaultyStages = 6;

TestNetwork FaultyNetwork(std::vector<Fault>* faults) {
  torch::manual_seed(5);
  faults->resize(kFaultyStages);
  ChainModel model("faults");
  for (Fault& fault : *faults) {
    torch::nn::Linear in(16, 48), out(48, 16);
    ModelStage stage;
    stage.name = "block";
    stage.op_kind = "block";
    stage.parameters = in->parameters();
    for (const at::Tensor& parameter : out->parameters()) stage.parameters.push_back(parameter);
    stage.forward = [in, out, at = &fault](const at::Tensor& x) { return Faulty(in, out, at, x); };
    model.AddStage(std::move(stage));
  }
  model.SetLoss("square", [](const at::Tensor& y, const at::Tensor&) { return y.square().mean(); });
  return {std::move(model), torch::randn({16, 16}), torch::zeros({1})};
}

TestNetwork Network(const std::string& name, std::vector<Fault>* faults) {
  if (name == "faults") return FaultyNetwork(faults);
  if (name == "decoder") {
    DecoderOptions options;
    options.layers = 4;
    options.width = 32;
    options.heads = 4;
    options.length = 16;
    options.vocabulary = 50;
    options.batch = 2;
    auto model = MakeDecoderModel(options, /*tied_embedding=*/true, /*seed=*/3).value();
    Sample sample = MakeTokenSample(2, 16, 50, 3).value();
    return {std::move(model), sample.input, sample.target};
  }
  if (name == "resnet50") {
    ModelOptions options;
    options.classes = 10;
    options.image = 32;
    Sample sample = MakeImageSample(2, 32, 10, 3).value();
    return {MakeModel("resnet50", options).value(), sample.input, sample.target};
  }
  return MakeTestNetwork(name);
}

struct Job {
  std::string network;
  std::vector<Budget> budgets;
  int steps = 0;
  seconds patience{0};
  std::string fault;  // of this rank
  int at = -1;
  size_t stage = 0;

  bool HasFault(const std::string& name, int step) const { return fault == name && step == at; }
};

Job ParseJob(const std::string& text, int rank) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  Job job;
  job.network = words.at(0);
  for (const auto share : absl::StrSplit(words.at(1), ',')) {
    double number = 0;
    if (absl::SimpleAtod(share, &number)) {
      job.budgets.push_back(ShareOfStoreAll{number - 0.02 * rank});
    } else {
      job.budgets.push_back(LeastBudget{});
    }
  }
  job.steps = std::atoi(words.at(2).c_str());
  job.patience = seconds(std::atoi(words.at(3).c_str()));
  if (words.size() > 4 && std::atoi(words.at(5).c_str()) == rank) {
    job.fault = words[4];
    job.at = std::atoi(words.at(6).c_str());
    job.stage = static_cast<size_t>(std::atoi(words.at(7).c_str()));
  }
  return job;
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

bool SameBits(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.sizes() == b.sizes() && a.is_contiguous() && b.is_contiguous() &&
         std::memcmp(a.data_ptr(), b.data_ptr(), a.nbytes()) == 0;
}

absl::Status CheckSame(const ModelTensors& a, const ModelTensors& b) {
  for (size_t i = 0; i < a.parameters().size(); ++i) {
    if (!SameBits(a.parameters()[i], b.parameters()[i])) {
      return absl::InternalError(absl::StrCat("parameters ", i, " differ"));
    }
    if (!SameBits(a.parameters()[i].grad(), b.parameters()[i].grad())) {
      return absl::InternalError(absl::StrCat("gradients ", i, " differ"));
    }
  }
  for (size_t i = 0; i < a.buffers().size(); ++i) {
    if (!SameBits(a.buffers()[i], b.buffers()[i])) {
      return absl::InternalError(absl::StrCat("buffers ", i, " differ"));
    }
  }
  return absl::OkStatus();
}

class Training {
 public:
  Training(Job job, int rank, int ranks, const c10::intrusive_ptr<c10d::Store>& store)
      : job_(std::move(job)),
        rank_(rank),
        store_(store),
        group_([this, store, ranks](const char* name) {
          return MakeGlooGroup(store, name, rank_, ranks, job_.patience);
        }),
        agreement_(MakeGroupAgreement(group_("agreement")).value()),
        agent_(&planned_.model, Options()) {
    // Each rank has batches of its own.
    at::manual_seed(static_cast<uint64_t>(rank) + 1);
    if (plain_.input.is_floating_point()) plain_.input = at::randn_like(plain_.input);
    planned_.input = plain_.input.clone();
  }

  absl::Status Run() {
    absl::Status status = Plan(job_.budgets.front(), /*refresh=*/false);
    if (!status.ok()) return status;
    plain_replica_ = std::make_unique<Replica>(plain_.model, group_("plain"));
    planned_replica_ = std::make_unique<Replica>(planned_.model, group_("planned"));
    const auto phases = static_cast<int>(job_.budgets.size());
    for (int step = 0; step < job_.steps; ++step) {
      const int phase = step * phases / job_.steps;
      if (phase != (step - 1) * phases / job_.steps && step > 0) {
        // Measured anew, with the Reducer's hooks on all parameters.
        const bool refresh = job_.network != "resnet50";  // which takes too long
        status = Plan(job_.budgets[static_cast<size_t>(phase)], refresh);
        if (!status.ok()) return status;
      }
      if (job_.HasFault("kill", step)) kill(getpid(), SIGKILL);
      if (job_.HasFault("term", step)) kill(getpid(), SIGTERM);
      if (job_.HasFault("stops", step)) WaitUntilGivenUp();
      if (job_.fault == "slow" && step >= job_.at) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
      }
      status = Step(step);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat("step ", step, ": ", status.message()));
      }
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
    if (job_.fault == "server") options.server.address = "unix:/nobody/is/here";
    return options;
  }

  absl::Status Plan(const Budget& budget, bool refresh) {
    const Batch batch{{planned_.input}, planned_.target};
    const auto plan = refresh ? agent_.Refresh(batch, budget) : agent_.Plan(batch, budget);
    if (!plan.ok()) return plan.status();
    if (plan->plan.status != PlanStatus::kFound) return absl::NotFoundError("there is no plan");
    // Beside the input, between what this plan takes and what the least one does.
    const Bytes input(static_cast<int64_t>(planned_.input.nbytes()));
    const Bytes least = plan->plan.bounds.least_budget;
    lacking_ = Bytes((plan->plan.prediction.peak + least).value() / 2) - input;
    recomputes_ = plan->plan.prediction.recomputed_forwards;
    return absl::OkStatus();
  }

  void WaitUntilGivenUp() const {
    while (!store_->check({"given up"})) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  // In some steps gradients of two batches add up, and are exchanged with the second.
  absl::Status Step(int step) {
    plain_.model.ZeroGradients();
    planned_.model.ZeroGradients();
    const int batches = step % 3 == 2 ? 2 : 1;
    for (int batch = 0; batch < batches; ++batch) {
      const bool exchanges = batch == batches - 1;
      const auto seed = static_cast<uint64_t>(100 * step + 10 * batch + rank_);
      const at::Tensor input = InputOf(step);
      at::manual_seed(seed);
      if (exchanges) plain_replica_->Begin();
      const auto expected = PlainStep(plain_.model, {input}, plain_.target);
      if (!expected.ok()) return expected.status();
      const RandomState random = RandomState::Capture();
      at::manual_seed(seed);
      if (exchanges) planned_replica_->Begin();
      if (exchanges) SetFault(step);
      for (Fault& fault : faults_) fault.forwards = 0;
      const auto got = agent_.Step({{input}, planned_.target});
      forwards_.clear();
      for (const Fault& fault : faults_) forwards_.push_back(fault.forwards);
      TrackingAllocator::Get()->ClearLimit();
      if (!got.ok()) return got.status();
      if (random != RandomState::Capture() || got->loss != expected->loss) {
        return absl::InternalError("losses or random states differ");
      }
      const absl::Status same = CheckSame(plain_.model, planned_.model);
      if (!same.ok()) return same;
      const absl::Status memory = CheckMemory(*got);
      if (!memory.ok()) return memory;
    }
    const std::string buckets = plain_replica_->TakeLog();
    if (buckets != planned_replica_->TakeLog()) return absl::InternalError("buckets differ");
    plain_replica_->Train();
    planned_replica_->Train();
    Say(absl::StrCat("step ", step, ": plan ", agent_.Token(), " in buckets ", buckets));
    return absl::OkStatus();
  }

  at::Tensor InputOf(int step) const {
    if (job_.HasFault("larger", step)) return at::cat({plain_.input, plain_.input});
    if (job_.HasFault("smaller", step)) return plain_.input.slice(0, 0, 7).clone();
    return plain_.input;
  }

  void SetFault(int step) {
    if (step != job_.at) return;
    if (job_.fault == "lacks") {
      TrackingAllocator* const memory = TrackingAllocator::Get();
      memory->SetLimit(memory->current() + lacking_);
    }
    if (faults_.empty()) return;
    if (job_.fault == "forward") faults_[job_.stage].forward = 1;
    if (job_.fault == "backward") faults_[job_.stage].backward = true;
    if (job_.fault == "recompute") {
      const std::vector<size_t> again = Recomputed();
      faults_[again[job_.stage % again.size()]].forward = 2;
    }
  }

  // Stages that run forward again in each step by this plan.
  std::vector<size_t> Recomputed() const {
    std::vector<size_t> again;
    for (size_t stage = 0; stage < forwards_.size(); ++stage) {
      if (forwards_[stage] > 1) again.push_back(stage);
    }
    TORCH_CHECK(!again.empty(), "nothing runs again");
    return again;
  }

  // Of a step that did not end by another plan.
  absl::Status CheckMemory(const StepReport& report) {
    const int64_t finished = agent_.steps().finished;
    if (std::exchange(finished_, finished) != finished) return absl::OkStatus();
    const Bytes budget = agent_.memory().budget;
    if (report.peak <= budget) return absl::OkStatus();
    return absl::InternalError(
        absl::StrCat("took ", report.peak.value(), " of ", budget.value(), " bytes"));
  }

  const Job job_;
  const int rank_;
  const c10::intrusive_ptr<c10d::Store> store_;
  const std::function<Group(const char*)> group_;
  const std::shared_ptr<PlanAgreement> agreement_;
  std::vector<Fault> plain_faults_;  // there are none
  std::vector<Fault> faults_;
  TestNetwork plain_ = Network(job_.network, &plain_faults_);
  TestNetwork planned_ = Network(job_.network, &faults_);
  Agent agent_;
  std::unique_ptr<Replica> plain_replica_, planned_replica_;
  Bytes lacking_;
  std::vector<int> forwards_;  // of each stage in the latest step
  int recomputes_ = 0;
  int64_t finished_ = 0;

 public:
  std::string Counts() const {
    return absl::StrCat(finished_, " finished, ", recomputes_, " recomputed");
  }
};

absl::Status RunJob(const std::string& text, int rank, int ranks,
                    const c10::intrusive_ptr<c10d::Store>& store) {
  try {
    // Never deleted: threads of groups whose other ranks are gone may use what it has.
    auto* const training = new Training(ParseJob(text, rank), rank, ranks, store);
    const absl::Status status = training->Run();
    Say(absl::StrCat("rank ", rank, ": ", training->Counts()));
    return status;
  } catch (const std::exception& error) {
    return absl::UnavailableError(error.what());
  }
}

int Main(int argc, char** argv) {
  if (argc < 5) return 2;
  TrackingAllocator::Install();
  // As Python has it: gloo writes to connections that a rank which is gone has closed.
  signal(SIGPIPE, SIG_IGN);
  const int rank = std::atoi(argv[2]);
  const int ranks = std::atoi(argv[3]);
  for (int i = 4; i < argc; ++i) {
    // No thread runs yet.
    const pid_t child = fork();
    if (child == 0) {
      at::set_num_threads(1);
      const auto store = c10::make_intrusive<c10d::FileStore>(absl::StrCat(argv[1], "/", i), ranks);
      const absl::Status status = RunJob(argv[i], rank, ranks, store);
      if (!status.ok()) store->set("given up", std::vector<uint8_t>{1});
      if (!status.ok()) Say(absl::StrCat("error: ", status.ToString()));
      _exit(status.ok() ? 0 : 1);
    }
    int ended = 0;
    waitpid(child, &ended, 0);
    Say(absl::StrCat("job ", i - 4, ": ",
                     WIFSIGNALED(ended)        ? absl::StrCat("signal ", WTERMSIG(ended))
                     : WEXITSTATUS(ended) == 0 ? "ended"
                                               : "failed"));
  }
  return 0;
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) { return stowage::Main(argc, argv); }
