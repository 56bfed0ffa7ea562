#include <gmock/gmock.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "proto/codec/codec.h"
#include "tests/proto/samples.h"

namespace stowage {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::HasSubstr;

std::string ReadData(const std::string& name) {
  std::ifstream file(std::string(STOWAGE_SOURCE_DIR) + "/tests/data/" + name);
  EXPECT_TRUE(file.good()) << name;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Json, WritesTheGoldenFiles) {
  EXPECT_EQ(ToJson(SampleChainProfile()), ReadData("profile_chain.json"));
  EXPECT_EQ(ToJson(SampleGraphProfile()), ReadData("profile_graph.json"));
  EXPECT_EQ(ToJson(SampleDagProfile()), ReadData("profile_dag.json"));
  EXPECT_EQ(ToJson(SamplePlan()), ReadData("plan.json"));
}

// Every field but those of messages that are not set: null stands for nothing, zero for zero.
void ExpectAllFields(const google::protobuf::Message& message,
                     const google::protobuf::Struct& json) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int f = 0; f < type.field_count(); ++f) {
    const google::protobuf::FieldDescriptor& field = *type.field(f);
    const bool has = json.fields().count(field.name()) > 0;
    const bool single_message =
        field.cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE &&
        !field.is_repeated();
    // A zero is not what its absence says.
    if (!single_message && !field.has_optional_keyword()) {
      EXPECT_TRUE(has) << field.full_name();
      continue;
    }
    const google::protobuf::Reflection& reflection = *message.GetReflection();
    ASSERT_EQ(has, reflection.HasField(message, &field)) << field.full_name();
    if (has) {
      ExpectAllFields(reflection.GetMessage(message, &field),
                      json.fields().at(field.name()).struct_value());
    }
  }
}

google::protobuf::Struct StructOf(const std::string& json) {
  google::protobuf::Struct fields;
  EXPECT_TRUE(google::protobuf::util::JsonStringToMessage(json, &fields).ok()) << json;
  return fields;
}

TEST(Json, CarriesEveryFieldZerosToo) {
  Plan nothing;
  nothing.status = PlanStatus::kProvenInfeasible;
  const v1::Plan infeasible = ToProto(nothing);
  ExpectAllFields(infeasible, StructOf(ToJson(infeasible)));
  for (const char* part :
       {"\"recomputed_forwards\": 0", "\"proven_optimal\": false", "\"gap\": 0",
        "\"instructions\": []", "\"offloaded_bytes\": \"0\"", "\"explanation\": \"\""}) {
    EXPECT_THAT(ToJson(infeasible), HasSubstr(part));
  }
  ExpectAllFields(SamplePlan(), StructOf(ToJson(SamplePlan())));
  v1::Profile chain;
  chain.mutable_device();
  chain.mutable_chain()->add_stages();
  const google::protobuf::Struct json = StructOf(ToJson(chain));
  ExpectAllFields(chain, json);
  ExpectAllFields(chain.chain().stages(0), json.fields()
                                               .at("chain")
                                               .struct_value()
                                               .fields()
                                               .at("stages")
                                               .list_value()
                                               .values(0)
                                               .struct_value());
}

// What was written before zeros were, and what people write.
TEST(Json, ReadsWhatLeavesZerosOut) {
  const auto full = ProfileFromJson(ReadData("profile_graph.json"));
  ASSERT_TRUE(full.ok()) << full.status();
  std::string sparse;
  google::protobuf::util::JsonPrintOptions without_zeros;
  ASSERT_TRUE(google::protobuf::util::MessageToJsonString(*full, &sparse, without_zeros).ok());
  ASSERT_LT(sparse.size(), ReadData("profile_graph.json").size());
  const auto again = ProfileFromJson(sparse);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*again, *full));
}

TEST(Json, ReadsTheGoldenFiles) {
  const auto chain = ProfileFromJson(ReadData("profile_chain.json"));
  ASSERT_TRUE(chain.ok()) << chain.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*chain, SampleChainProfile()));
  const auto graph = ProfileFromJson(ReadData("profile_graph.json"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*graph, SampleGraphProfile()));
  const auto dag = ProfileFromJson(ReadData("profile_dag.json"));
  ASSERT_TRUE(dag.ok()) << dag.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*dag, SampleDagProfile()));
}

// Plans of before the first release have other names for a few things.
TEST(Json, ReadsPlansByTheirNamesOfBefore) {
  std::string old = ReadData("plan.json");
  const std::vector<std::pair<std::string, std::string>> names = {
      {"offloaded_bytes", "sent_bytes"},
      {"prefetched_bytes", "fetched_bytes"},
      {"OP_FORWARD_SAVE", "OP_FORWARD_KEEP_ALL"},
      {"OP_FORWARD_NO_SAVE", "OP_FORWARD_KEEP_INPUT"},
      {"OP_FORWARD_NO_SAVE_FREE_INPUT", "OP_FORWARD_KEEP_NOTHING"},
      {"OP_DROP_SAVED_KEEP_OUTPUT", "OP_REDUCE"}};
  for (const auto& [now, before] : names) {
    const size_t at = old.find('"' + now + '"');
    ASSERT_NE(at, std::string::npos) << now;
    old.replace(at + 1, now.size(), before);
  }
  const auto plan = PlanFromJson(old);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*plan, SamplePlan()));
  const auto camel = PlanFromJson(R"({"prediction": {"sentBytes": "7", "fetchedBytes" : 8}})");
  ASSERT_TRUE(camel.ok()) << camel.status();
  EXPECT_EQ(camel->prediction().offloaded_bytes(), 7);
  EXPECT_EQ(camel->prediction().prefetched_bytes(), 8);
  // A name is a name only where names are.
  const auto text =
      PlanFromJson(R"({"explanation": "sent_bytes", "provenance": {"solver": "OP_REDUCE"}})");
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->explanation(), "sent_bytes");
  EXPECT_EQ(text->provenance().solver(), "OP_REDUCE");
  for (const char* broken :
       {"{\"sent_bytes", "{\"sent_bytes\\", "\"sent_bytes\"", "{\"op\": \"OP_REDUCE\"}"}) {
    EXPECT_FALSE(PlanFromJson(broken).ok()) << broken;
  }
}

TEST(Json, TakesNumbersAndLowerCamelNamesToo) {
  const auto profile =
      ProfileFromJson(R"({"chain": {"inputBytes": 7, "stages": [{"forward_time_ns": "8"}]}})");
  ASSERT_TRUE(profile.ok()) << profile.status();
  EXPECT_EQ(profile->chain().input_bytes(), 7);
  EXPECT_EQ(profile->chain().stages(0).forward_time_ns(), 8);
}

void ExpectRefused(const std::string& json, const std::string& words) {
  const auto profile = ProfileFromJson(json);
  ASSERT_FALSE(profile.ok()) << json.substr(0, 80);
  EXPECT_EQ(profile.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(profile.status().message()),
              HasSubstr("not the JSON mapping of stowage.v1.Profile: "));
  EXPECT_THAT(std::string(profile.status().message()), HasSubstr(words));
}

TEST(Json, RefusesWhatIsNoProfile) {
  ExpectRefused("", "Unexpected end of string");
  ExpectRefused("{", "Expected");
  ExpectRefused("[]", "");
  ExpectRefused("{} {}", "");
  ExpectRefused(R"({"flavour": 1})", "flavour");
  ExpectRefused(R"({"chain": {"stages": [{"saved_byte": 1}]}})", "saved_byte");
  ExpectRefused(R"({"chain": {}, "graph": {}})", "oneof");
  ExpectRefused(R"({"chain": {"input_bytes": "many"}})", "many");
  ExpectRefused(R"({"chain": {"input_bytes": 1.5}})", "1.5");
  ExpectRefused(R"({"chain": {"input_bytes": 9223372036854775808}})", "9223372036854775808");
  ExpectRefused(R"({"chain": {"input_bytes": NaN}})", "");
  ExpectRefused(R"({"cost_source": "COST_SOURCE_GUESSED"})", "COST_SOURCE_GUESSED");
  ExpectRefused("{\"name\": \"\xff\xfe\"}", "UTF-8");
}

TEST(Json, DeepNestingIsRefusedAndNotFollowed) {
  ExpectRefused(std::string(1000000, '['), "");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += R"({"chain":)";
  ExpectRefused(objects, "");
}

// Cuts, overwrites and repeats parts of a valid text.
std::string Damage(std::string text, std::mt19937* random) {
  static constexpr char kBytes[] = "{}[]\",:0123456789-eE.\\u\0\xff null";
  const auto below = [random](size_t n) {
    return std::uniform_int_distribution<size_t>(0, n - 1)(*random);
  };
  const size_t changes = 1 + below(3);
  for (size_t i = 0; i < changes && !text.empty(); ++i) {
    const size_t at = below(text.size());
    switch (below(3)) {
      case 0:
        text[at] = kBytes[below(sizeof(kBytes) - 1)];
        break;
      case 1:
        text.erase(at, 1 + below(20));
        break;
      default:
        text.insert(at, text.substr(below(text.size()), below(40)));
    }
  }
  return text;
}

TEST(Json, DamagedTextsAreReadOrRefused) {
  std::mt19937 random(20240501);
  int refused = 0;
  int read = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string& whole = ReadData(i % 2 == 0 ? "profile_chain.json" : "profile_graph.json");
    const auto message = ProfileFromJson(Damage(whole, &random));
    if (!message.ok()) {
      EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
      ++refused;
      continue;
    }
    ++read;
    const auto profile = FromProto(*message);
    EXPECT_TRUE(profile.ok() || absl::IsInvalidArgument(profile.status())) << profile.status();
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(read, 50);
}

}  // namespace
}  // namespace stowage
