// Unary calls of a gRPC service whose messages are bytes: what is timed is the service and the
// transport, not what a client does with the answer.
#ifndef STOWAGE_TESTS_BENCH_LOAD_CALL_DRIVER_H_
#define STOWAGE_TESTS_BENCH_LOAD_CALL_DRIVER_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace stowage {

struct CallResult {
  grpc::Status status;
  std::string reply;
  double seconds = 0;
};

// One thread starts calls and polls for their results.
class CallDriver {
 public:
  using Clock = std::chrono::steady_clock;
  using Done = std::function<void(const CallResult&)>;

  // `connections` >= 1, used in turn, each of its own. With a token, callers bear it.
  CallDriver(const std::string& address, int connections, std::string token = "");
  // Cancels what is open and waits for it.
  ~CallDriver();

  // `method`: "/stowage.v1.PlanService/GetPlan". `done` is called by Poll, and may start calls.
  void Start(const std::string& method, const std::string& request,
             std::chrono::milliseconds timeout, Done done);
  // The same, given up by the caller after `patience`.
  void StartAndCancel(const std::string& method, const std::string& request,
                      std::chrono::milliseconds patience, Done done);

  // Handles one result; false when none came within `wait`.
  bool Poll(std::chrono::milliseconds wait);
  // Until all that was started has ended.
  void Finish();

  int64_t open() const { return open_; }

 private:
  struct Call;
  Call* Begin(const std::string& method, const std::string& request,
              std::chrono::milliseconds timeout, Done done);
  void CancelDue();

  const std::string token_;
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs_;
  grpc::CompletionQueue queue_;
  size_t next_stub_ = 0;
  int64_t open_ = 0;
  std::vector<Call*> calls_;
  std::vector<std::pair<Clock::time_point, Call*>> to_cancel_;
};

grpc::ByteBuffer ToByteBuffer(const std::string& bytes);
std::string ToString(const grpc::ByteBuffer& buffer);

// The p-th part of the values, p in [0, 1].
double Quantile(std::vector<double> values, double p);

}  // namespace stowage

#endif  // STOWAGE_TESTS_BENCH_LOAD_CALL_DRIVER_H_
