// A status has four forms: the node's, the wire's, the client's and JSON's.
// tests/unit/control checks that the daemon writes every field of the wire.
// Here each field of the wire alone must show in JSON under its own name, so a
// new field fails this test until the client reads it and JSON tells it.
#include <set>
#include <string>

#include "cli/status_json.h"
#include "client/proto_types.h"
#include "dfl/control/v1/control.pb.h"
#include "gtest/gtest.h"

namespace dfl::cli {
namespace {

namespace pb = dfl::control::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void SetScalar(Message& message, const FieldDescriptor* field) {
  const google::protobuf::Reflection& set = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return set.SetInt64(&message, field, int64_t{7} << 33);
    case FieldDescriptor::CPPTYPE_UINT64:
      return set.SetUInt64(&message, field, uint64_t{7} << 33);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return set.SetDouble(&message, field, 0.375);
    case FieldDescriptor::CPPTYPE_BOOL:
      return set.SetBool(&message, field, true);
    case FieldDescriptor::CPPTYPE_ENUM:
      return set.SetEnumValue(&message, field, 2);
    case FieldDescriptor::CPPTYPE_STRING:
      return set.SetString(&message, field, "told");
    default:
      FAIL() << field->full_name() << " has a type this test does not know";
  }
}

// One value in `field`, whatever its kind.
void SetField(Message& message, const FieldDescriptor* field) {
  const google::protobuf::Reflection& set = *message.GetReflection();
  if (field->is_map()) {
    Message& entry = *set.AddMessage(&message, field);
    const google::protobuf::Descriptor& type = *entry.GetDescriptor();
    SetScalar(entry, type.map_key());
    if (type.map_value()->message_type() == nullptr) {
      SetScalar(entry, type.map_value());
    } else {
      entry.GetReflection()->MutableMessage(&entry, type.map_value());
    }
  } else if (field->is_repeated()) {
    if (field->message_type() != nullptr) {
      set.AddMessage(&message, field);
    } else {
      set.AddString(&message, field, "told");
    }
  } else if (field->message_type() != nullptr) {
    set.MutableMessage(&message, field);
  } else {
    SetScalar(message, field);
  }
}

// For each field of the message that `part` finds in a status: `json` finds
// what differs from an empty status under the field's name.
template <typename Part, typename Find>
void ExpectEachFieldShows(Part part, Find json,
                          const std::set<std::string>& but) {
  pb::DaemonStatus empty;
  const google::protobuf::Descriptor* type = part(empty).GetDescriptor();
  const Json before = json(ToJsonValue(client::FromProto(empty)));
  ASSERT_GT(type->field_count(), 0);
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const std::string name(field->name());
    if (but.count(name) > 0) continue;
    pb::DaemonStatus status;
    SetField(part(status), field);
    const Json after = json(ToJsonValue(client::FromProto(status)));
    ASSERT_TRUE(after.contains(name)) << field->full_name();
    EXPECT_NE(after[name], before[name])
        << field->full_name() << " is lost on its way to JSON";
  }
}

Json Whole(const Json& status) { return status; }

TEST(StatusForms, EveryFieldOfTheWireIsToldAsJson) {
  ExpectEachFieldShows([](pb::DaemonStatus& s) -> Message& { return s; }, Whole,
                       {"node"});  // told field by field, as the next case
  ExpectEachFieldShows(
      [](pb::DaemonStatus& s) -> Message& { return *s.mutable_node(); }, Whole,
      {});
  ExpectEachFieldShows(
      [](pb::DaemonStatus& s) -> Message& {
        return *s.mutable_node()->mutable_evaluation();
      },
      [](const Json& status) { return status["evaluation"]; }, {});
  ExpectEachFieldShows(
      [](pb::DaemonStatus& s) -> Message& {
        return *s.mutable_node()->add_peers();
      },
      [](const Json& status) { return status["peers"][0]; }, {});
}

}  // namespace
}  // namespace dfl::cli
