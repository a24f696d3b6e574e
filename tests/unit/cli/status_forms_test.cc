// A status has four forms: the daemon's, the wire's, the client's and JSON's,
// and dflctl prints a part of it. These tests fail for a new field that any of
// them lacks. tests/unit/control checks that the daemon writes every field of
// the wire.
#include <cstddef>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/status_json.h"
#include "cli/status_table.h"
#include "client/proto_types.h"
#include "daemon/control/backend.h"
#include "daemon/runtime/status.h"
#include "dfl/control/v1/control.pb.h"
#include "gtest/gtest.h"
#include "proto/status_fields.h"

namespace dfl::cli {

// How many members an aggregate has. The conversion is declared and never
// called, which only a name with external linkage may be.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor): that is its use
};

namespace {

namespace pb = dfl::control::v1;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

template <typename T, typename... Members>
constexpr int CountMembers() {
  if constexpr (requires { T{Members{}..., Anything{}}; }) {
    return CountMembers<T, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

#define DFL_ONE_VALUE(name, source) +1
#define DFL_ONE(name) +1
constexpr int kNodeFields = 0 DFL_NODE_NAME_FIELDS(DFL_ONE_VALUE)
    DFL_NODE_STATUS_FIELDS(DFL_ONE_VALUE, DFL_ONE, DFL_ONE, DFL_ONE);
constexpr int kEvaluationFields =
    0 DFL_EVALUATION_FIELDS(DFL_ONE_VALUE, DFL_ONE);
constexpr int kPeerFields = 0 DFL_PEER_STATUS_FIELDS(DFL_ONE_VALUE, DFL_ONE);
constexpr int kDaemonFields =
    0 DFL_DAEMON_STATUS_FIELDS(DFL_ONE_VALUE, DFL_ONE);

TEST(StatusForms, EveryMemberOfTheDaemonsFormIsListed) {
  // evaluated, evaluated_step and evaluation are one field.
  EXPECT_EQ(CountMembers<runtime::NodeStatus>(), kNodeFields + 2);
  EXPECT_EQ(CountMembers<ports::Evaluation>(), kEvaluationFields);
  EXPECT_EQ(CountMembers<runtime::PeerStatus>(), kPeerFields);
  EXPECT_EQ(CountMembers<control::DaemonStatus>(), kDaemonFields + 1);  // node
}

TEST(StatusForms, EveryFieldOfTheWireIsListed) {
  EXPECT_EQ(pb::NodeStatus::descriptor()->field_count(), kNodeFields);
  EXPECT_EQ(pb::Evaluation::descriptor()->field_count(),
            kEvaluationFields + 1);  // step
  EXPECT_EQ(pb::PeerStatus::descriptor()->field_count(), kPeerFields);
  EXPECT_EQ(pb::DaemonStatus::descriptor()->field_count(), kDaemonFields + 1);
}

// Sets a field that holds one value to another one.
void Change(Message& message, const FieldDescriptor* field) {
  const Reflection& set = *message.GetReflection();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return set.SetInt64(&message, field, int64_t{7} << 33);
    case FieldDescriptor::CPPTYPE_UINT64:
      return set.SetUInt64(&message, field, uint64_t{7} << 33);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return set.SetDouble(&message, field, 0.375);
    case FieldDescriptor::CPPTYPE_BOOL:
      return set.SetBool(&message, field, !set.GetBool(message, field));
    case FieldDescriptor::CPPTYPE_ENUM:
      return set.SetEnumValue(&message, field, 2);
    case FieldDescriptor::CPPTYPE_STRING:
      return set.SetString(&message, field, "told");
    default:
      FAIL() << field->full_name() << " has a type this test does not know";
  }
}

// Changes a field of any kind, and what is in it.
void ChangeAny(Message& message, const FieldDescriptor* field);

void ChangeAll(Message& message) {
  const Descriptor* type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    // Of a choice, the first.
    const google::protobuf::OneofDescriptor* choice =
        type->field(i)->containing_oneof();
    if (choice != nullptr && choice->field(0) != type->field(i)) continue;
    ChangeAny(message, type->field(i));
  }
}

void ChangeAny(Message& message, const FieldDescriptor* field) {
  const Reflection& set = *message.GetReflection();
  if (field->message_type() != nullptr) {
    ChangeAll(field->is_repeated() ? *set.AddMessage(&message, field)
                                   : *set.MutableMessage(&message, field));
  } else if (field->is_repeated()) {
    set.AddString(&message, field, "told");
  } else {
    Change(message, field);
  }
}

// Where the messages of a status are in it.
Message& InDaemon(pb::DaemonStatus& status) { return status; }
Message& InNode(pb::DaemonStatus& status) { return *status.mutable_node(); }
Message& InEvaluation(pb::DaemonStatus& status) {
  return *status.mutable_node()->mutable_evaluation();
}
Message& InPeer(pb::DaemonStatus& status) {
  pb::NodeStatus& node = *status.mutable_node();
  return node.peers().empty() ? *node.add_peers() : *node.mutable_peers(0);
}
using Part = Message& (*)(pb::DaemonStatus&);

// Calls `check` for each field of `part` with a copy of `base` in which only
// this field was changed.
template <typename Check>
void ForEachField(const pb::DaemonStatus& base, Part part, Check check) {
  pb::DaemonStatus any = base;
  const Descriptor* type = part(any).GetDescriptor();
  ASSERT_GT(type->field_count(), 0);
  for (int i = 0; i < type->field_count(); ++i) {
    pb::DaemonStatus status = base;
    ChangeAny(part(status), type->field(i));
    check(*type->field(i), status);
  }
}

TEST(StatusForms, EveryFieldOfTheWireIsToldAsJson) {
  struct Case {
    Part part;
    const char* place;  // in JSON
  };
  for (const Case& c :
       {Case{InDaemon, ""}, Case{InNode, ""}, Case{InEvaluation, "/evaluation"},
        Case{InPeer, "/peers/0"}}) {
    pb::DaemonStatus empty;
    c.part(empty);
    const Json::json_pointer place(c.place);
    const Json before = ToJsonValue(client::FromProto(empty)).at(place);
    ForEachField(
        empty, c.part,
        [&](const FieldDescriptor& field, const pb::DaemonStatus& status) {
          const std::string& name = field.name();
          // The node's fields stand beside those of its daemon.
          if (&field ==
              pb::DaemonStatus::descriptor()->FindFieldByName("node")) {
            return;
          }
          const Json after = ToJsonValue(client::FromProto(status)).at(place);
          ASSERT_TRUE(after.contains(name)) << field.full_name();
          EXPECT_NE(after.at(name), before.at(name))
              << field.full_name() << " is lost on its way to JSON";
        });
  }
}

// A status whose texts depend on each of its parts.
pb::DaemonStatus Telling() {
  pb::DaemonStatus status;
  status.set_cluster("plant-4");
  status.set_memory_bytes(2);
  status.set_memory_limit_bytes(1);
  status.mutable_node()->set_phase(pb::PHASE_IDLE);
  status.mutable_node()->set_gradients(1);
  return status;
}

// What `dflctl status` prints.
std::string StatusText(const pb::DaemonStatus& message) {
  const client::DaemonStatus status = client::FromProto(message);
  return absl::StrCat(absl::StrJoin(StatusRow(status), "|"), "\n",
                      absl::StrJoin(StatusNotes(status), "\n"));
}

// What `dflctl status --peers` prints beside it.
std::string PeersText(const pb::DaemonStatus& message) {
  return PeerTable(client::FromProto(message).node.peers).ToString();
}

void ExpectShownBut(const pb::DaemonStatus& base, Part part,
                    std::string (*text)(const pb::DaemonStatus&),
                    const std::set<std::string>& json_only) {
  ForEachField(
      base, part,
      [&](const FieldDescriptor& field, const pb::DaemonStatus& status) {
        EXPECT_EQ(text(status) != text(base),
                  json_only.count(std::string(field.name())) == 0)
            << field.full_name() << " is either printed or named in this test";
      });
}

TEST(StatusForms, WhatDflctlDoesNotPrintIsNamedHere) {
  ExpectShownBut(
      Telling(), InDaemon, StatusText,
      {"version", "uptime_seconds", "peer_addresses", "refused", "banned",
       // With -o wide.
       "learner", "threads", "threads_reason"});
  ExpectShownBut(Telling(), InNode, StatusText,
                 {"incarnation", "run_id", "knobs", "weights", "spectral_gap",
                  "member_count", "format", "model", "contract",
                  "parameter_count", "buffer_count", "train_rows", "test_rows",
                  "epochs", "stop_epochs", "gradients",
                  // Only mass_imbalance is a reason for a note.
                  "gauges", "steps_per_second", "training_seconds",
                  "longest_step_gap_seconds", "dense_bytes_sent", "models_sent",
                  "models_received", "missed", "rejected", "checkpoint_step"});
  pb::DaemonStatus with_peer = Telling();
  pb::PeerStatus& peer = *with_peer.mutable_node()->add_peers();
  peer.set_neighbour(true);
  peer.set_phase(pb::PHASE_IDLE);
  ExpectShownBut(with_peer, InPeer, PeersText,
                 {"models_sent", "models_received", "rejected", "disagrees"});
}

}  // namespace
}  // namespace dfl::cli
