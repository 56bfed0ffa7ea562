#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "proto/codec/utf8.h"

namespace stowage {
namespace {

std::string Print(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  // Zeros, false and empty lists, too: a reader then need not know what a missing name stands for.
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails for a malformed Any or Timestamp only; the messages printed here hold neither.
  (void)google::protobuf::util::MessageToJsonString(message, &json, options);
  return json;
}

template <class Message>
absl::StatusOr<Message> Read(const std::string& json) {
  Message message;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &message);
  if (status.ok()) return message;
  const std::string words(status.message().data(), status.message().size());
  return absl::InvalidArgumentError(absl::StrCat(
      "not the JSON mapping of ", message.GetDescriptor()->full_name(), ": ", ToValidUtf8(words)));
}

}  // namespace

std::string ToJson(const v1::Profile& message) { return Print(message); }

std::string ToJson(const v1::Plan& message) { return Print(message); }

absl::StatusOr<v1::Profile> ProfileFromJson(const std::string& json) {
  return Read<v1::Profile>(json);
}

absl::StatusOr<v1::Plan> PlanFromJson(const std::string& json) { return Read<v1::Plan>(json); }

}  // namespace stowage
