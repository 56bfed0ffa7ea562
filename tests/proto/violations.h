// What the tests of validation share: the exact parts of a field error, and numbers that must not
// be negative.
#ifndef STOWAGE_TESTS_PROTO_VIOLATIONS_H_
#define STOWAGE_TESTS_PROTO_VIOLATIONS_H_

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "proto/codec/codec.h"
#include "solvers/model/field_error.h"

namespace stowage {

inline void ExpectViolation(const absl::Status& status, const std::string& field,
                            const std::string& value, const std::string& rule) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  const auto violation = GetFieldViolation(status);
  ASSERT_TRUE(violation.has_value()) << status;
  EXPECT_EQ(violation->field, field);
  EXPECT_EQ(violation->value, value);
  EXPECT_EQ(violation->rule, rule);
}

// What reading says of a message after a change.
template <class Message>
absl::Status Changed(Message message, const std::function<void(Message*)>& change) {
  change(&message);
  return FromProto(message).status();
}

// Sets every integer of the message that `locate` finds to -1, one at a time. Says how many there
// were.
template <class Root>
int ExpectNoNegative(const Root& root,
                     const std::function<google::protobuf::Message*(Root*)>& locate,
                     const std::string& prefix) {
  int checked = 0;
  Root sample = root;
  const auto* descriptor = locate(&sample)->GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = descriptor->field(i);
    if (field->is_repeated()) continue;
    Root broken = root;
    google::protobuf::Message* message = locate(&broken);
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT64) {
      message->GetReflection()->SetInt64(message, field, -1);
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_INT32) {
      message->GetReflection()->SetInt32(message, field, -1);
    } else {
      continue;
    }
    ++checked;
    const std::string rule =
        field->name() == "bandwidth_class" ? "must be in [0, 63]" : "must be >= 0";
    ExpectViolation(FromProto(broken).status(), prefix + field->name(), "-1", rule);
  }
  return checked;
}

}  // namespace stowage

#endif  // STOWAGE_TESTS_PROTO_VIOLATIONS_H_
