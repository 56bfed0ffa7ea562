#include <google/protobuf/util/json_util.h>

#include <map>
#include <string>

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

// Names that plans had before the first release: fields, and values of Instruction.op. To be read for one version.
const std::string* NameNow(const std::string& name) {
  static const auto* const kNames = new std::map<std::string, std::string>{
      {"sent_bytes", "offloaded_bytes"},
      {"sentBytes", "offloadedBytes"},
      {"fetched_bytes", "prefetched_bytes"},
      {"fetchedBytes", "prefetchedBytes"},
      {"OP_FORWARD_KEEP_ALL", "OP_FORWARD_SAVE"},
      {"OP_FORWARD_KEEP_INPUT", "OP_FORWARD_NO_SAVE"},
      {"OP_FORWARD_KEEP_NOTHING", "OP_FORWARD_NO_SAVE_FREE_INPUT"},
      {"OP_REDUCE", "OP_DROP_SAVED_KEEP_OUTPUT"}};
  const auto found = kNames->find(name);
  return found == kNames->end() ? nullptr : &found->second;
}

// The same JSON with the names of now. Only names of fields and what stands at "op" are looked at: a network may be
// called anything.
std::string WithNamesOfNow(const std::string& json) {
  std::string result, field;
  size_t copied = 0;
  for (size_t at = json.find('"'); at != std::string::npos; at = json.find('"', at)) {
    size_t end = at + 1;
    while (end < json.size() && json[end] != '"') end += json[end] == '\\' ? 2 : 1;
    if (end >= json.size()) break;  // the parser says what is wrong
    const std::string text = json.substr(at + 1, end - at - 1);
    const size_t next = json.find_first_not_of(" \t\r\n", end + 1);
    const bool is_field = next != std::string::npos && json[next] == ':';
    if (is_field) field = text;
    const std::string* const now = is_field || field == "op" ? NameNow(text) : nullptr;
    if (now != nullptr) {
      absl::StrAppend(&result, json.substr(copied, at + 1 - copied), *now);
      copied = end;
    }
    at = end + 1;
  }
  return result + json.substr(copied);
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

absl::StatusOr<v1::Plan> PlanFromJson(const std::string& json) {
  return Read<v1::Plan>(WithNamesOfNow(json));
}

}  // namespace stowage
