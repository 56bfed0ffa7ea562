#include "server/rpc/get_plan_bytes.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "stowage/v1/plan_service.pb.h"

namespace stowage {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedOutputStream;

// Writes at the end of so many bytes, which are enough for all that is written here.
class FieldsOfReply {
 public:
  FieldsOfReply() = default;
  FieldsOfReply(const FieldsOfReply&) = delete;
  FieldsOfReply& operator=(const FieldsOfReply&) = delete;

  void Number(int field, int64_t value) {
    if (value != 0) end_ = WireFormatLite::WriteInt64ToArray(field, value, end_);
  }
  // That so many bytes follow, which are the field.
  void Opening(int field, size_t size) {
    end_ = WireFormatLite::WriteTagToArray(field, WireFormatLite::WIRETYPE_LENGTH_DELIMITED, end_);
    end_ = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(size), end_);
  }
  void Raw(const uint8_t* bytes, size_t size) { end_ = std::copy_n(bytes, size, end_); }

  const uint8_t* bytes() const { return bytes_.data(); }
  size_t size() const { return static_cast<size_t>(end_ - bytes_.data()); }

 private:
  std::array<uint8_t, 160> bytes_;
  uint8_t* end_ = bytes_.data();
};

}  // namespace

grpc::ByteBuffer GetPlanReply(const CachedPlan& cached, const WrittenPlan& written, bool basic,
                              bool unchanged) {
  const grpc::Slice& plan = basic ? written.basic : written.fields;
  FieldsOfReply key, budget, before;
  key.Number(v1::PlanKey::kEncodingVersionFieldNumber, cached.key.encoding_version);
  key.Opening(v1::PlanKey::kDigestFieldNumber, Digest::kSize);
  key.Raw(cached.key.digest.bytes().data(), Digest::kSize);
  budget.Number(v1::Plan::kBudgetBytesFieldNumber, cached.budget.value());
  before.Opening(v1::GetPlanResponse::kKeyFieldNumber, key.size());
  before.Raw(key.bytes(), key.size());
  before.Number(v1::GetPlanResponse::kProfileWantedFieldNumber, cached.profile_wanted ? 1 : 0);
  before.Number(v1::GetPlanResponse::kUnchangedFieldNumber, unchanged ? 1 : 0);
  before.Opening(v1::GetPlanResponse::kPlanFieldNumber, budget.size() + plan.size());
  before.Raw(budget.bytes(), budget.size());
  const grpc::Slice slices[] = {grpc::Slice(before.bytes(), before.size()), plan};
  return grpc::ByteBuffer(slices, 2);
}

}  // namespace stowage
