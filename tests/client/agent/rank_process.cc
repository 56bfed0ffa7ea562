// One rank of a job, as a process: trains a small network by plans that all ranks agree on, and says by
// which plan each step went.
//
// usage: rank_process folder|file|tcp PLACE RANK RANKS SHARE STEPS [drift] [dies]
// Agrees in the folder PLACE, or over a store in it. `drift`: finds its steps slower than planned. `dies`: is
// killed in the middle of them. Exit code 1: an error, which it has said.
#include <ATen/Parallel.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/agent/agent.h"
#include "client/torch/memory/tracking_allocator.h"
#include "tests/client/torch/test_networks.h"
#ifdef STOWAGE_TEST_C10D
#include <torch/csrc/distributed/c10d/FileStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "client/agent/store_agreement.h"
#endif

namespace stowage {
namespace {

constexpr std::chrono::seconds kPatience(20);

#ifdef STOWAGE_TEST_C10D
// Rank 0 serves it, and tells the others the port in a file.
c10::intrusive_ptr<c10d::Store> TcpStore(const std::string& place, int rank) {
  const std::string file = place + "/port";
  c10d::TCPStoreOptions options;
  options.waitWorkers = false;
  options.port = 0;
  options.isServer = rank == 0;
  if (rank == 0) {
    auto store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    std::ofstream(file + ".unfinished") << store->getPort();
    std::filesystem::rename(file + ".unfinished", file);
    return store;
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!std::filesystem::exists(file) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::ifstream(file) >> options.port;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

c10::intrusive_ptr<c10d::Store> StoreOf(const std::string& kind, const std::string& place, int rank,
                                        int ranks) {
  if (kind == "tcp") return TcpStore(place, rank);
  return c10::make_intrusive<c10d::FileStore>(place + "/store", ranks);
}
#endif

absl::StatusOr<std::unique_ptr<PlanAgreement>> Join(const std::string& kind,
                                                    const std::string& place, int rank, int ranks) {
#ifdef STOWAGE_TEST_C10D
  if (kind != "folder") {
    return MakeStoreAgreement(StoreOf(kind, place, rank, ranks), {rank, ranks, kPatience});
  }
#endif
  return MakeFolderAgreement({place, rank, ranks, kPatience});
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

int Fail(const absl::Status& status) {
  Say(status.ToString());
  return 1;
}

int Train(const std::shared_ptr<PlanAgreement>& agreement, double share, int steps, bool drifts,
          bool dies) {
  TestNetwork network = MakeTestNetwork("norm_mlp");
  AgentOptions options;
  options.agreement = agreement;
  options.report_after = 0;
  options.drift.window = 3;
  // Of real steps any time is off by so little.
  options.drift.time = drifts ? 1e-12 : 0;
  options.drift.replans = 1;
  Agent agent(&network.model, options);
  const auto plan = agent.Plan(network.input, network.target, ShareOfStoreAll{share});
  if (!plan.ok()) return Fail(plan.status());
  for (int step = 0; step < steps; ++step) {
    if (dies && step == 4) kill(getpid(), SIGKILL);
    const auto report = agent.Step(network.input, network.target);
    if (!report.ok()) return Fail(report.status());
    Say(absl::StrCat("step ", step, " of plan ", agent.events().of<AdoptedEvent>(), ": ",
                     agent.Token()));
  }
  // The rank that serves a store stays until the others need it no more.
  if (agreement->Gather("done").ok() || agreement->rank() > 0) return 0;
  return Fail(absl::InternalError("others are not done"));
}

}  // namespace
}  // namespace stowage

int main(int argc, char** argv) {
  if (argc < 7) return 2;
  stowage::TrackingAllocator::Install();
  at::set_num_threads(1);
  bool drifts = false;
  bool dies = false;
  for (int i = 7; i < argc; ++i) {
    drifts |= std::string(argv[i]) == "drift";
    dies |= std::string(argv[i]) == "dies";
  }
  auto agreement = stowage::Join(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  if (!agreement.ok()) return stowage::Fail(agreement.status());
  return stowage::Train(*std::move(agreement), std::atof(argv[5]), std::atoi(argv[6]), drifts,
                        dies);
}
