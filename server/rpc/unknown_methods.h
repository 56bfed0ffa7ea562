// What is not of this server's contract: methods of clients that are older or newer.
#ifndef STOWAGE_SERVER_RPC_UNKNOWN_METHODS_H_
#define STOWAGE_SERVER_RPC_UNKNOWN_METHODS_H_

#include <grpcpp/generic/async_generic_service.h>

#include <string>

namespace stowage {

// Answers every method that no service has with UNIMPLEMENTED (reason NOT_IMPLEMENTED; metadata "method",
// "server_version"), where gRPC's own answer has neither words nor details: that is what methods get that are none of
// Stowage's. No message is read.
class UnknownMethods final : public grpc::CallbackGenericService {
 public:
  explicit UnknownMethods(std::string version);

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

 private:
  const std::string version_;
};

}  // namespace stowage

#endif  // STOWAGE_SERVER_RPC_UNKNOWN_METHODS_H_
