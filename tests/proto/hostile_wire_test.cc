// Bytes from anybody: a message is parsed or not, a parsed one is valid or INVALID_ARGUMENT,
// nothing crashes or hangs.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "proto/codec/codec.h"
#include "solvers/model/field_error.h"
#include "tests/proto/samples.h"

namespace stowage {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct Tally {
  int unparsed = 0;
  int invalid = 0;
  int valid = 0;
};

template <class Message>
void Judge(const Message& message, Tally* tally) {
  const auto value = FromProto(message);
  if (value.ok()) {
    ++tally->valid;
    // What is valid stays valid on its way back.
    const auto again = FromProto(ToProto(*value));
    EXPECT_TRUE(again.ok()) << again.status();
    return;
  }
  ++tally->invalid;
  EXPECT_EQ(value.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(GetFieldViolation(value.status()).has_value()) << value.status();
}

template <class Message>
void Take(const std::string& wire, Tally* tally) {
  Message message;
  if (!message.ParseFromString(wire)) {
    ++tally->unparsed;
    return;
  }
  Judge(message, tally);
}

template <class Message>
void TakeDamaged(const Message& sample, Tally* tally) {
  const std::string whole = sample.SerializeAsString();
  for (size_t size = 0; size < whole.size(); ++size) Take<Message>(whole.substr(0, size), tally);
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string wire = whole;
    for (int change = 0; change <= i % 4; ++change) {
      wire[random() % wire.size()] = static_cast<char>(random());
    }
    Take<Message>(wire, tally);
  }
}

TEST(HostileWire, DamagedProfiles) {
  Tally tally;
  TakeDamaged(SampleChainProfile(), &tally);
  TakeDamaged(SampleGraphProfile(), &tally);
  EXPECT_GT(tally.unparsed, 100);
  EXPECT_GT(tally.invalid, 100);
  EXPECT_GT(tally.valid, 100);
}

TEST(HostileWire, DamagedPlans) {
  Tally tally;
  TakeDamaged(SamplePlan(), &tally);
  EXPECT_GT(tally.unparsed, 100);
  EXPECT_GT(tally.invalid, 100);
  EXPECT_GT(tally.valid, 100);
}

TEST(HostileWire, RandomBytes) {
  std::mt19937 random(11);
  Tally tally;
  for (int i = 0; i < 20000; ++i) {
    std::string wire(random() % 200, '\0');
    for (char& byte : wire) byte = static_cast<char>(random());
    Take<v1::Profile>(wire, &tally);
    Take<v1::Plan>(wire, &tally);
    Take<v1::Budget>(wire, &tally);
    Take<v1::PlanKey>(wire, &tally);
  }
  EXPECT_GT(tally.unparsed, 1000);
}

TEST(HostileWire, DeepNestingIsRefused) {
  Tally tally;
  // Groups of an unknown field, each inside the one before.
  Take<v1::Profile>(std::string(10000000, '\x7b'), &tally);
  EXPECT_EQ(tally.unparsed, 1);
}

TEST(HostileWire, HugeCountsAreRefusedWithoutTheirMemory) {
  Tally tally;
  // A chain (field 3) that claims 2^31 - 1 bytes; vertex ids (packed) that claim as many.
  Take<v1::Profile>("\x1a\xff\xff\xff\xff\x07", &tally);
  Take<v1::Plan>("\x42\x07\x0a\xff\xff\xff\xff\x07\x01", &tally);
  EXPECT_EQ(tally.unparsed, 2);
}

int64_t Extreme(std::mt19937* random) {
  static constexpr int64_t kValues[] = {std::numeric_limits<int64_t>::max(),
                                        std::numeric_limits<int64_t>::min(),
                                        int64_t{1} << 62,
                                        (int64_t{1} << 62) - 1,
                                        int64_t{1} << 61,
                                        -1,
                                        0,
                                        1};
  return kValues[(*random)() % std::size(kValues)];
}

// Puts extreme values into a share of all numbers.
void Exaggerate(Message* message, std::mt19937* random) {
  const Reflection* reflection = message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    const bool chosen = (*random)() % 16 == 0;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (field->is_repeated()) {
        for (int k = 0; k < reflection->FieldSize(*message, field); ++k) {
          Exaggerate(reflection->MutableRepeatedMessage(message, field, k), random);
        }
      } else if (reflection->HasField(*message, field)) {
        Exaggerate(reflection->MutableMessage(message, field), random);
      }
    } else if (chosen && field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 &&
               !field->is_repeated()) {
      reflection->SetInt64(message, field, Extreme(random));
    } else if (chosen && field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      reflection->SetEnumValue(message, field, static_cast<int>((*random)() % 6));
    }
  }
}

TEST(HostileWire, ExtremeNumbers) {
  std::mt19937 random(13);
  Tally tally;
  for (int i = 0; i < 20000; ++i) {
    v1::Profile profile = i % 2 == 0 ? SampleChainProfile() : SampleGraphProfile();
    Exaggerate(&profile, &random);
    Judge(profile, &tally);
    v1::Plan plan = SamplePlan();
    Exaggerate(&plan, &random);
    Judge(plan, &tally);
  }
  EXPECT_GT(tally.invalid, 1000);
  EXPECT_GT(tally.valid, 1000);
}

}  // namespace
}  // namespace stowage
