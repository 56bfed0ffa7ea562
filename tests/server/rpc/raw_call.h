// Calls by bytes, which need not be a message.
#ifndef STOWAGE_TESTS_SERVER_RPC_RAW_CALL_H_
#define STOWAGE_TESTS_SERVER_RPC_RAW_CALL_H_

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <memory>
#include <string>

namespace stowage::testing {

// A unary call of bytes.
inline grpc::Status RawCall(const std::shared_ptr<grpc::Channel>& channel,
                            const std::string& method, const std::string& request,
                            grpc::ByteBuffer* response,
                            std::chrono::seconds timeout = std::chrono::seconds(20)) {
  grpc::Slice slice(request);
  const grpc::ByteBuffer buffer(&slice, 1);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  std::promise<grpc::Status> done;
  grpc::GenericStub(channel).UnaryCall(
      &context, method, grpc::StubOptions(), &buffer, response,
      [&done](const grpc::Status& status) { done.set_value(status); });
  return done.get_future().get();
}

}  // namespace stowage::testing

#endif  // STOWAGE_TESTS_SERVER_RPC_RAW_CALL_H_
