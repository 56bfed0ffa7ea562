// Asks the server at the address twice for one plan: it is solved once, then cached.
#include <iostream>

#include "client/rpc/connect.h"
#include "solvers/zoo/networks.h"

int main(int argc, char** argv) {
  stowage::GrpcOptions server;
  server.address = argc > 1 ? argv[1] : "";
  const auto connection = stowage::MakeGrpcConnection(server);
  const auto& device = stowage::ModelledV100();
  const auto chain = stowage::NetworkChain({"resnet50", 224, 8}, device);
  if (!chain.ok()) return 1;
  const stowage::Profile profile = stowage::ModelledProfile(*chain, device);

  const stowage::Budget budget = *stowage::ParseBudget("60%");
  const auto call = stowage::CallOptions::Within(std::chrono::seconds(30));
  for (const auto expected : {stowage::PlanSource::kSolved, stowage::PlanSource::kCache}) {
    const auto reply = connection->ComputePlan(profile, budget, {}, call);
    if (!reply.ok()) {
      std::cerr << reply.status() << "\n";
      return 1;
    }
    std::cout << "peak " << reply->plan.prediction.peak.value() << ", " << ToString(reply->source)
              << "\n";
    if (reply->source != expected || reply->plan.prediction.peak > reply->plan.budget) return 1;
  }
  return 0;
}
