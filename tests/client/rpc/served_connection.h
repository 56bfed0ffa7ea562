// A client of a server whose answers a test decides.
#ifndef STOWAGE_TESTS_CLIENT_RPC_SERVED_CONNECTION_H_
#define STOWAGE_TESTS_CLIENT_RPC_SERVED_CONNECTION_H_

#include <gtest/gtest.h>

#include <chrono>
#include <memory>

#include "client/rpc/grpc_connection.h"
#include "tests/client/rpc/fake_server.h"

namespace stowage {

inline GrpcOptions OptionsFor(const SocketAddress& address) {
  GrpcOptions options;
  options.address = address.uri();
  return options;
}

// Where the server is the test's to start and to end.
class ConnectionTest : public testing::Test {
 protected:
  absl::StatusOr<PlanReply> Compute(
      const CallOptions& options = CallOptions::Within(std::chrono::seconds(10))) {
    return connection_->ComputePlan(SmallProfile(), budget_, {}, options);
  }

  SocketAddress address_;
  std::unique_ptr<PlanConnection> connection_ = MakeGrpcConnection(OptionsFor(address_));
  Budget budget_ = ShareOfStoreAll{0.8};
};

class ServedConnectionTest : public ConnectionTest {
 protected:
  FakeServer server_{address_.uri()};
  const PlanKey key_{kEncodingVersion, Sha256("a plan")};
  const CallOptions call_ = CallOptions::Within(std::chrono::seconds(10));
};

}  // namespace stowage

#endif  // STOWAGE_TESTS_CLIENT_RPC_SERVED_CONNECTION_H_
