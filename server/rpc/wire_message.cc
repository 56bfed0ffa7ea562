#include "server/rpc/wire_message.h"

#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

#include <climits>

#include "absl/strings/str_cat.h"
#include "solvers/model/field_error.h"

namespace stowage {

namespace {

bool IsMessage(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* request) {
  grpc::Slice whole;
  // Small ones are in one piece, which takes no reader.
  if (bytes.TrySingleSlice(&whole).ok() && whole.size() <= size_t{INT_MAX}) {
    return request->ParseFromArray(whole.begin(), static_cast<int>(whole.size()));
  }
  grpc::ByteBuffer mine = bytes;  // shares the slices
  grpc::ProtoBufferReader reader(&mine);
  return reader.status().ok() && request->ParseFromZeroCopyStream(&reader);
}

}  // namespace

grpc::ByteBuffer TakeRequest(const grpc::ByteBuffer* request) {
  grpc::ByteBuffer taken;
  // gRPC made it for this call as what may be changed, and looks at it again only to destroy it.
  taken.Swap(const_cast<grpc::ByteBuffer*>(request));
  return taken;
}

absl::Status ParseRequest(const grpc::ByteBuffer& bytes, google::protobuf::MessageLite* request) {
  if (IsMessage(bytes, request)) return absl::OkStatus();
  return FieldError("request", absl::StrCat(bytes.Length(), " bytes"),
                    absl::StrCat("must be the bytes of a ", request->GetTypeName()));
}

absl::Status WriteAnswer(const google::protobuf::MessageLite& answer, const RequestLimits& limits,
                         grpc::ByteBuffer* bytes) {
  const size_t size = answer.ByteSizeLong();
  if (absl::Status status = CheckSize(size, limits); !status.ok()) return status;
  // Slices no larger than gRPC makes them for messages.
  grpc::ProtoBufferWriter writer(bytes, grpc::kProtoBufferWriterMaxBufferLength,
                                 static_cast<int>(size));
  if (answer.SerializeToZeroCopyStream(&writer)) return absl::OkStatus();
  return absl::InternalError("the answer could not be written");
}

}  // namespace stowage
