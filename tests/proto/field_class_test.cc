// Every field of a profile belongs to one class, and the class says whether the key sees it. The
// walk goes by descriptors, so a field that somebody adds is held to both without anybody thinking
// of this test.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/codec/codec.h"
#include "stowage/v1/field_class.pb.h"
#include "tests/proto/samples.h"

namespace stowage {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// These name each other, so they are varied consistently, by the tests below the walk.
const std::set<std::string>& VariedByHand() {
  static const auto* fields = new std::set<std::string>{
      "stowage.v1.Vertex.id", "stowage.v1.Vertex.program_order", "stowage.v1.Edge.vertex_id",
      "stowage.v1.Node.id",   "stowage.v1.Node.program_order",   "stowage.v1.Node.inputs"};
  return *fields;
}

v1::FieldClass ClassOf(const FieldDescriptor* field) {
  return field->options().GetExtension(v1::field_class);
}

bool InKey(const FieldDescriptor* field) {
  return ClassOf(field) == v1::FIELD_CLASS_STRUCTURE ||
         ClassOf(field) == v1::FIELD_CLASS_ENVIRONMENT;
}

// All fields that are not messages below `descriptor`.
void CollectFields(const Descriptor* descriptor, std::set<const FieldDescriptor*>* leaves,
                   std::set<const Descriptor*>* seen) {
  if (!seen->insert(descriptor).second) return;
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      EXPECT_FALSE(field->options().HasExtension(v1::field_class)) << field->full_name();
      CollectFields(field->message_type(), leaves, seen);
    } else {
      leaves->insert(field);
    }
  }
}

std::set<const FieldDescriptor*> LeavesOfProfile() {
  std::set<const FieldDescriptor*> leaves;
  std::set<const Descriptor*> seen;
  CollectFields(v1::Profile::descriptor(), &leaves, &seen);
  return leaves;
}

// Gives a leaf another value; the samples leave room for every one of these changes.
void Vary(Message* message, const FieldDescriptor* field) {
  const Reflection* reflection = message->GetReflection();
  if (field->is_repeated()) {
    ASSERT_EQ(field->cpp_type(), FieldDescriptor::CPPTYPE_INT64) << field->full_name();
    return reflection->AddInt64(message, field, 1);
  }
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return reflection->SetInt64(message, field, reflection->GetInt64(*message, field) + 1);
    case FieldDescriptor::CPPTYPE_INT32:
      return reflection->SetInt32(message, field, reflection->GetInt32(*message, field) + 1);
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection->SetBool(message, field, !reflection->GetBool(*message, field));
    case FieldDescriptor::CPPTYPE_STRING:
      return reflection->SetString(message, field, reflection->GetString(*message, field) + "x");
    case FieldDescriptor::CPPTYPE_ENUM: {
      const int count = field->enum_type()->value_count();
      const int next = (reflection->GetEnumValue(*message, field) + 1) % count;
      return reflection->SetEnumValue(message, field, next);
    }
    default:
      FAIL() << field->full_name() << " has a type that no profile had when this was written";
  }
}

std::string KeyOf(const v1::Profile& message) {
  const auto profile = FromProto(message);
  EXPECT_TRUE(profile.ok()) << profile.status();
  return profile.ok() ? MakePlanKey(*profile, KeyOptions()).digest.ToHex() : "";
}

// Walks all values of a profile, varies each, and compares keys.
class Walk {
 public:
  explicit Walk(v1::Profile profile) : profile_(std::move(profile)), key_(KeyOf(profile_)) {
    Visit(&profile_, "profile");
  }
  const std::set<const FieldDescriptor*>& varied() const { return varied_; }

 private:
  void Visit(Message* message, const std::string& path) {
    const Descriptor* descriptor = message->GetDescriptor();
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* field = descriptor->field(i);
      const std::string field_path = absl::StrCat(path, ".", field->name());
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        VisitMessages(message, field, field_path);
      } else {
        Check(message, field, field_path);
      }
    }
  }

  void VisitMessages(Message* message, const FieldDescriptor* field, const std::string& path) {
    const Reflection* reflection = message->GetReflection();
    if (!field->is_repeated()) {
      if (reflection->HasField(*message, field)) {
        Visit(reflection->MutableMessage(message, field), path);
      }
      return;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) {
      Visit(reflection->MutableRepeatedMessage(message, field, i), absl::StrCat(path, "[", i, "]"));
    }
  }

  void Check(Message* message, const FieldDescriptor* field, const std::string& path) {
    if (VariedByHand().count(field->full_name()) > 0) return;
    // What reads nothing cannot be an alias.
    const auto* vertex = dynamic_cast<const v1::Vertex*>(message);
    if (vertex && vertex->inputs().empty() && field->name() == "alias") return;
    const auto* node = dynamic_cast<const v1::Node*>(message);
    if (node && node->inputs().empty() && field->name() == "alias") return;
    const std::unique_ptr<Message> saved(message->New());
    saved->CopyFrom(*message);
    if (absl::StartsWith(field->name(), "recompute_saving_")) {
      // Neither losses nor aliases have it, and no stage an overhead without a time.
      const bool aliases = vertex && vertex->alias() != v1::ALIAS_KIND_UNSPECIFIED;
      if (aliases || absl::StrContains(path, ".loss.")) return;
      const auto* time = message->GetDescriptor()->FindFieldByName("recompute_saving_time_ns");
      message->GetReflection()->SetInt64(message, time, 0);
    }
    Vary(message, field);
    if (InKey(field)) {
      EXPECT_NE(KeyOf(profile_), key_) << path;
    } else {
      EXPECT_EQ(KeyOf(profile_), key_) << path;
    }
    message->CopyFrom(*saved);
    varied_.insert(field);
  }

  v1::Profile profile_;
  std::string key_;
  std::set<const FieldDescriptor*> varied_;
};

TEST(FieldClass, EveryLeafHasOneAndNoMessageHas) {
  const auto leaves = LeavesOfProfile();
  EXPECT_GT(leaves.size(), 40u);
  for (const FieldDescriptor* field : leaves) {
    EXPECT_NE(ClassOf(field), v1::FIELD_CLASS_UNSPECIFIED) << field->full_name();
  }
}

TEST(FieldClass, SaysWhetherTheKeySeesAField) {
  auto varied = Walk(SampleChainProfile()).varied();
  const auto of_graph = Walk(SampleGraphProfile()).varied();
  // Nor does the bandwidth count where its class follows from it.
  v1::Profile unstated = SampleChainProfile();
  unstated.mutable_device()->clear_bandwidth_class();
  EXPECT_GT(Walk(unstated).varied().size(), 20u);
  varied.insert(of_graph.begin(), of_graph.end());
  const auto of_dag = Walk(SampleDagProfile()).varied();
  varied.insert(of_dag.begin(), of_dag.end());
  for (const FieldDescriptor* field : LeavesOfProfile()) {
    const bool by_hand = VariedByHand().count(field->full_name()) > 0;
    EXPECT_NE(varied.count(field) > 0, by_hand) << field->full_name();
  }
}

std::string KeyOfChangedGraph(const std::function<void(v1::Graph*)>& change) {
  v1::Profile profile = SampleGraphProfile();
  change(profile.mutable_graph());
  return KeyOf(profile);
}

TEST(FieldClass, VertexIdsAreLabels) {
  const std::string renumbered = KeyOfChangedGraph([](v1::Graph* graph) {
    for (v1::Vertex& vertex : *graph->mutable_vertices()) {
      vertex.set_id(1000 - vertex.id());
      for (v1::Edge& edge : *vertex.mutable_inputs()) edge.set_vertex_id(1000 - edge.vertex_id());
    }
  });
  EXPECT_EQ(renumbered, KeyOf(SampleGraphProfile()));
}

TEST(FieldClass, OrderOfTheListIsNotInTheKey) {
  const std::string swapped =
      KeyOfChangedGraph([](v1::Graph* graph) { graph->mutable_vertices()->SwapElements(0, 4); });
  EXPECT_EQ(swapped, KeyOf(SampleGraphProfile()));
}

TEST(FieldClass, NumbersOfTheProgramOrderAreNotInTheKey) {
  const std::string stretched = KeyOfChangedGraph([](v1::Graph* graph) {
    for (v1::Vertex& vertex : *graph->mutable_vertices()) {
      vertex.set_program_order(10 * vertex.program_order() + 3);
    }
  });
  EXPECT_EQ(stretched, KeyOf(SampleGraphProfile()));
}

TEST(FieldClass, ProgramOrderIsStructure) {
  for (const int first : {0, 1}) {  // neither reads the other
    const std::string swapped = KeyOfChangedGraph([first](v1::Graph* graph) {
      v1::Vertex* a = graph->mutable_vertices(first);
      v1::Vertex* b = graph->mutable_vertices(first + 1);
      const int64_t order = a->program_order();
      a->set_program_order(b->program_order());
      b->set_program_order(order);
    });
    EXPECT_NE(swapped, KeyOf(SampleGraphProfile()));
  }
}

TEST(FieldClass, EdgesAreStructure) {
  const std::string key = KeyOf(SampleGraphProfile());
  EXPECT_NE(KeyOfChangedGraph([](v1::Graph* graph) {
              graph->mutable_vertices(2)->mutable_inputs(0)->set_vertex_id(40);
            }),
            key);
  EXPECT_NE(KeyOfChangedGraph([](v1::Graph* graph) {
              graph->mutable_vertices(3)->mutable_inputs()->SwapElements(0, 1);
            }),
            key);
  EXPECT_NE(KeyOfChangedGraph([](v1::Graph* graph) {
              *graph->mutable_vertices(3)->add_inputs() = graph->vertices(3).inputs(0);
            }),
            key);
}

std::string KeyOfChangedDag(const std::function<void(v1::ComputeDag*)>& change) {
  v1::Profile profile = SampleDagProfile();
  change(profile.mutable_dag());
  return KeyOf(profile);
}

TEST(FieldClass, NodesAreAsVertices) {
  const std::string key = KeyOf(SampleDagProfile());
  EXPECT_EQ(KeyOfChangedDag([](v1::ComputeDag* dag) {
              for (v1::Node& node : *dag->mutable_nodes()) {
                node.set_id(1000 - node.id());
                node.set_program_order(10 * node.program_order() + 3);
                for (int64_t& input : *node.mutable_inputs()) input = 1000 - input;
              }
              dag->mutable_nodes()->SwapElements(0, 4);
            }),
            key);
  EXPECT_NE(KeyOfChangedDag([](v1::ComputeDag* dag) { dag->mutable_nodes(4)->set_inputs(0, 10); }),
            key);
  EXPECT_NE(KeyOfChangedDag([](v1::ComputeDag* dag) { dag->mutable_nodes(4)->add_inputs(10); }),
            key);
  EXPECT_NE(KeyOfChangedDag([](v1::ComputeDag* dag) {
              dag->mutable_nodes(2)->set_program_order(6);
              dag->mutable_nodes(3)->set_program_order(4);
            }),
            key);
}

TEST(FieldClass, SavedTensorsAreStructure) {
  const v1::Profile sample = SampleChainProfileWithSavedTensors();
  v1::Profile larger = sample, swapped = sample, moved = sample;
  auto* tensors = larger.mutable_chain()->mutable_stages(1)->mutable_saved_tensor_bytes();
  tensors->Set(0, tensors->Get(0) + 1);
  swapped.mutable_chain()->mutable_stages(1)->mutable_saved_tensor_bytes()->SwapElements(0, 1);
  moved.mutable_chain()->mutable_stages(1)->mutable_saved_tensor_bytes()->RemoveLast();
  for (const v1::Profile& changed : {larger, swapped, moved, SampleChainProfile()}) {
    EXPECT_NE(KeyOf(changed), KeyOf(sample));
  }
}

TEST(FieldClass, LengthsOfListsAreStructure) {
  v1::Profile chain = SampleChainProfile();
  *chain.mutable_chain()->add_stages() = chain.chain().stages(2);
  EXPECT_NE(KeyOf(chain), KeyOf(SampleChainProfile()));
  EXPECT_NE(KeyOfChangedGraph([](v1::Graph* graph) {
              v1::Vertex* added = graph->add_vertices();
              added->set_id(60);
              added->set_program_order(60);
            }),
            KeyOf(SampleGraphProfile()));
}

}  // namespace
}  // namespace stowage
