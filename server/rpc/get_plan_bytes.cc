#include "server/rpc/get_plan_bytes.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/slice.h>

#include <string>

#include "proto/codec/codec.h"
#include "stowage/v1/plan_service.pb.h"

namespace stowage {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// What stands before the cached fields of the plan: that a plan follows, and its budget.
std::string Opening(Bytes budget, size_t plan_fields) {
  std::string budget_field;
  {
    v1::Plan plan;
    plan.set_budget_bytes(budget.value());
    budget_field = plan.SerializeAsString();
  }
  std::string opening;
  google::protobuf::io::StringOutputStream stream(&opening);
  {
    CodedOutputStream out(&stream);
    out.WriteTag(WireFormatLite::MakeTag(v1::GetPlanResponse::kPlanFieldNumber,
                                         WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    out.WriteVarint32(static_cast<uint32_t>(budget_field.size() + plan_fields));
    out.WriteString(budget_field);
  }
  return opening;
}

}  // namespace

grpc::ByteBuffer GetPlanReply(const CachedPlan& cached, const WrittenPlan& written, bool basic,
                              bool unchanged) {
  const grpc::Slice& fields = basic ? written.basic : written.fields;
  v1::GetPlanResponse rest;
  *rest.mutable_key() = ToProto(cached.key);
  rest.set_profile_wanted(cached.profile_wanted);
  rest.set_unchanged(unchanged);
  const grpc::Slice slices[] = {grpc::Slice(Opening(cached.budget, fields.size())), fields,
                                grpc::Slice(rest.SerializeAsString())};
  return grpc::ByteBuffer(slices, 3);
}

}  // namespace stowage
