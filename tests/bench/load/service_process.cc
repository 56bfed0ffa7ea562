#include "tests/bench/load/service_process.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stowage {
namespace {

// What follows `label` up to a space, comma or end of line.
std::string After(const std::string& text, const std::string& label) {
  const size_t start = text.find(label);
  if (start == std::string::npos) return "";
  const size_t from = start + label.size();
  return text.substr(from, text.find_first_of(", \n", from) - from);
}

// The body and headers of GET /metrics.
std::string Scrape(const std::string& address) {
  const std::vector<std::string> parts = absl::StrSplit(address, ':');
  int port = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &port)) return "";
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, parts[0].c_str(), &to.sin_addr);
  std::string text;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) {
    const std::string request = "GET /metrics HTTP/1.0\r\n\r\n";
    if (write(fd, request.data(), request.size()) > 0) {
      char buffer[4096];
      ssize_t count = 0;
      while ((count = read(fd, buffer, sizeof(buffer))) > 0) {
        text.append(buffer, static_cast<size_t>(count));
      }
    }
  }
  close(fd);
  return text;
}

}  // namespace

absl::StatusOr<ServiceProcess> ServiceProcess::Start(const std::vector<std::string>& command) {
  ServiceProcess service;
  service.process_ = std::make_unique<testing::ChildProcess>(command);
  // The log may have said something before.
  std::string line = service.process_->ReadUntil("listening on ");
  line += service.process_->ReadUntil("\n");
  service.address_ = After(line, "listening on ");
  service.metrics_address_ = After(line, "metrics on ");
  if (service.address_.empty()) {
    return absl::UnavailableError(absl::StrCat(command[0], " does not listen: ", line));
  }
  return service;
}

int64_t ServiceProcess::resident_bytes() const {
  std::ifstream status(absl::StrCat("/proc/", process_->pid(), "/status"));
  std::string line;
  while (std::getline(status, line)) {
    int64_t kilobytes = 0;
    if (line.rfind("VmRSS:", 0) == 0) {
      std::istringstream(line.substr(6)) >> kilobytes;
      return kilobytes * 1024;
    }
  }
  return 0;
}

double ServiceProcess::Metric(const std::string& family) const {
  double sum = 0;
  for (const auto& line : absl::StrSplit(Scrape(metrics_address_), '\n')) {
    const std::string text(line);
    if (text.rfind(family, 0) != 0) continue;
    const char after = text[family.size()];
    if (after == '{' || after == ' ' || family.back() == '"')
      sum += std::atof(text.substr(text.rfind(' ')).c_str());
  }
  return sum;
}

v1::ComputePlanRequest PlanRequest(int stages, int seed, double share_of_store_all) {
  v1::ComputePlanRequest request;
  v1::Profile* profile = request.mutable_profile();
  profile->mutable_device()->set_model("load");
  v1::Chain* chain = profile->mutable_chain();
  chain->set_input_bytes(4096 + seed);
  for (int i = 0; i < stages; ++i) {
    v1::Stage* stage = chain->add_stages();
    const int64_t output = 1 << 20;
    stage->set_op_kind("block");
    stage->set_output_bytes(output + 4096 * (i % 7));
    stage->set_saved_bytes(3 * output + 4096 * (i % 11));
    stage->set_output_gradient_bytes(output + 4096 * (i % 7));
    stage->set_forward_time_ns(100000 + 1000 * (i % 13));
    stage->set_backward_time_ns(200000 + 1000 * (i % 17));
  }
  request.mutable_budget()->set_share_of_store_all(share_of_store_all);
  return request;
}

absl::StatusOr<CachedRequest> CachePlan(int stages, int seed, CallDriver* driver) {
  v1::ComputePlanResponse computed;
  absl::Status status;
  const auto keep = [&status](google::protobuf::MessageLite* message, const CallResult& result) {
    if (!result.status.ok()) status = absl::InternalError(result.status.error_message());
    if (status.ok() && !message->ParseFromString(result.reply)) {
      status = absl::InternalError("the answer does not parse");
    }
  };
  const v1::ComputePlanRequest request = PlanRequest(stages, seed, 0.5);
  driver->Start("/stowage.v1.PlanService/ComputePlan", request.SerializeAsString(),
                std::chrono::seconds(60),
                [&](const CallResult& result) { keep(&computed, result); });
  driver->Finish();
  if (!status.ok()) return status;
  v1::GetPlanRequest get;
  *get.add_keys() = computed.key();
  *get.mutable_budget() = request.budget();
  v1::GetPlanResponse got;
  CachedRequest cached{get.SerializeAsString(), 0};
  driver->Start("/stowage.v1.PlanService/GetPlan", cached.request, std::chrono::seconds(60),
                [&](const CallResult& result) {
                  keep(&got, result);
                  cached.reply_bytes = result.reply.size();
                });
  driver->Finish();
  if (!status.ok()) return status;
  return cached;
}

}  // namespace stowage
