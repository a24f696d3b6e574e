// What the daemon writes, the client reads: every field of the status survives.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <variant>

#include "client/proto_types.h"
#include "daemon/control/event_proto.h"
#include "daemon/control/status_proto.h"
#include "tests/unit/control/fake_backend.h"

namespace dfl::control {
namespace {

client::DaemonStatus RoundTrip(const DaemonStatus& status) {
  dfl::control::v1::DaemonStatus message;
  ToProto(status, message);
  dfl::control::v1::DaemonStatus read;
  EXPECT_TRUE(read.ParseFromString(message.SerializeAsString()));
  return client::FromProto(read);
}

// No field of the sample is left at its default, so a field that either side
// forgets shows as unset in the message.
void ExpectEveryFieldSet(const google::protobuf::Message& message,
                         const std::set<std::string>& but) {
  const google::protobuf::Descriptor* type = message.GetDescriptor();
  const google::protobuf::Reflection* reflection = message.GetReflection();
  for (int i = 0; i < type->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type->field(i);
    if (but.count(field->name()) > 0) continue;
    EXPECT_TRUE(field->is_repeated() ? reflection->FieldSize(message, field) > 0
                                     : reflection->HasField(message, field))
        << type->name() << "." << field->name() << " is never written";
  }
}

TEST(StatusRoundTrip, WritesEveryFieldOfTheContract) {
  DaemonStatus status = SampleStatus("box-1");
  status.insecure = true;
  status.memory_bytes = int64_t{7} << 33;
  status.memory_limit_bytes = int64_t{5} << 34;
  status.warnings = {"plain text"};
  status.node.phase_reason = "because";
  status.node.last_error = "broken";
  status.node.alone = "nobody answers";
  status.node.checkpoint_step = 128;
  status.node.checkpoint_error = "no space left";
  status.node.data_error = "line 3 has no label";
  status.node.evaluation.mae = 0.5;
  status.node.evaluation.r2 = 0.25;
  for (runtime::PeerStatus& peer : status.node.peers) peer.mixing = true;
  dfl::control::v1::DaemonStatus message;
  ToProto(status, message);
  ExpectEveryFieldSet(message, {});
  ExpectEveryFieldSet(message.node(), {});
  ExpectEveryFieldSet(message.node().evaluation(), {});
  ExpectEveryFieldSet(message.node().peers(0), {"last_error"});
  ExpectEveryFieldSet(message.node().peers(1), {"linked"});
}

TEST(StatusRoundTrip, TheClientReadsWhatTheDaemonWrote) {
  const DaemonStatus in = SampleStatus("box-1");
  const client::DaemonStatus out = RoundTrip(in);
  const runtime::NodeStatus& a = in.node;
  const client::NodeStatus& b = out.node;
  EXPECT_EQ(b.node, "box-1");
  EXPECT_EQ(b.incarnation, a.incarnation);
  EXPECT_EQ(b.phase, client::Phase::kTraining);
  EXPECT_EQ(b.run_id, a.run_id);
  EXPECT_EQ(b.plan_version, a.plan_version);
  EXPECT_EQ(b.pending_plan_version, a.pending_plan_version);
  EXPECT_EQ(b.algorithm, a.algorithm);
  ASSERT_EQ(b.knobs.size(), a.knobs.size());
  EXPECT_EQ(std::get<double>(b.knobs.at("nu")), 0.5);
  EXPECT_EQ(std::get<int64_t>(b.knobs.at("t0")), 7);
  EXPECT_EQ(std::get<bool>(b.knobs.at("some_flag")), true);
  EXPECT_EQ(std::get<std::string>(b.knobs.at("some_text")), "polyak");
  EXPECT_EQ(std::get<client::IntRange>(b.knobs.at("kappa")).lo, 5);
  EXPECT_EQ(std::get<client::IntRange>(b.knobs.at("kappa")).hi, 10);
  EXPECT_EQ(b.topology, a.topology);
  EXPECT_EQ(b.weights, a.weights);
  EXPECT_EQ(b.spectral_gap, a.spectral_gap);
  EXPECT_EQ(b.member_count, a.member_count);
  EXPECT_EQ(b.format, a.format);
  EXPECT_EQ(b.model, a.model);
  EXPECT_EQ(b.contract, a.contract);
  EXPECT_EQ(b.parameter_count, a.parameter_count);
  EXPECT_EQ(b.buffer_count, a.buffer_count);
  EXPECT_EQ(b.train_rows, a.train_rows);
  EXPECT_EQ(b.test_rows, a.test_rows);
  EXPECT_EQ(b.step, a.step);
  EXPECT_EQ(b.stop_steps, a.stop_steps);
  EXPECT_EQ(b.round, a.round);
  EXPECT_EQ(b.stop_rounds, a.stop_rounds);
  EXPECT_EQ(b.epochs, a.epochs);
  EXPECT_EQ(b.stop_epochs, a.stop_epochs);
  EXPECT_EQ(b.gradients, a.gradients);
  EXPECT_EQ(b.failed_gradients, a.failed_gradients);
  EXPECT_EQ(b.skipped_batches, a.skipped_batches);
  EXPECT_EQ(b.far_models, a.far_models);
  EXPECT_EQ(b.loss, a.loss);
  ASSERT_TRUE(b.evaluation.has_value());
  EXPECT_EQ(b.evaluation->step, a.evaluated_step);
  EXPECT_EQ(b.evaluation->loss, a.evaluation.loss);
  EXPECT_EQ(b.evaluation->accuracy, a.evaluation.accuracy);
  EXPECT_EQ(b.evaluation->macro_f1, a.evaluation.macro_f1);
  EXPECT_FALSE(b.evaluation->mae.has_value());
  EXPECT_FALSE(b.evaluation->r2.has_value());
  EXPECT_EQ(b.evaluation->rows, a.evaluation.rows);
  EXPECT_EQ(b.steps_per_second, a.steps_per_second);
  EXPECT_EQ(b.training_seconds, 31);
  EXPECT_EQ(b.longest_step_gap_seconds, 0.25);
  EXPECT_EQ(b.gauges, a.gauges);
  EXPECT_EQ(b.bytes_sent, a.bytes_sent);
  EXPECT_EQ(b.bytes_received, a.bytes_received);
  EXPECT_EQ(b.dense_bytes_sent, a.dense_bytes_sent);
  EXPECT_EQ(b.models_sent, a.models_sent);
  EXPECT_EQ(b.models_received, a.models_received);
  EXPECT_EQ(b.missed, a.missed);
  EXPECT_EQ(b.rejected, a.rejected);
  ASSERT_EQ(b.peers.size(), 2u);
  const client::PeerStatus& peer = b.peers[0];
  EXPECT_EQ(peer.node, "box-2");
  EXPECT_EQ(peer.address, "10.0.0.2:7600");
  EXPECT_TRUE(peer.neighbour);
  EXPECT_TRUE(peer.linked);
  EXPECT_EQ(peer.weight, 0.25);
  EXPECT_EQ(peer.phase, client::Phase::kPaused);
  EXPECT_EQ(peer.step, 998);
  EXPECT_EQ(peer.plan_version, 2u);
  EXPECT_EQ(peer.bytes_sent, 100);
  EXPECT_EQ(peer.bytes_received, 200);
  EXPECT_EQ(peer.models_sent, 3);
  EXPECT_EQ(peer.models_received, 4);
  EXPECT_EQ(peer.missed, 5);
  EXPECT_EQ(peer.rejected, 6);
  EXPECT_EQ(b.peers[1].last_error, "connection refused");
  EXPECT_EQ(out.version, "0.1.0");
  EXPECT_EQ(out.uptime_seconds, 60);
  EXPECT_EQ(out.peer_addresses, in.peer_addresses);
  EXPECT_EQ(out.memory_bytes, in.memory_bytes);
  EXPECT_EQ(out.memory_limit_bytes, in.memory_limit_bytes);
}

TEST(StatusRoundTrip, PhasesHaveTheSameNamesOnBothSides) {
  for (int i = 1; i <= 7; ++i) {
    const auto phase = static_cast<ports::Phase>(i);
    EXPECT_STREQ(client::PhaseName(client::FromProto(ToProto(phase))),
                 ports::PhaseName(phase));
  }
}

TEST(StatusRoundTrip, NoEvaluationIsNone) {
  DaemonStatus status = SampleStatus("box-1");
  status.node.evaluated = false;
  EXPECT_FALSE(RoundTrip(status).node.evaluation.has_value());
}

TEST(StatusRoundTrip, EveryWatchedEventHasAKindAndASentence) {
  const ports::NodeEvent events[] = {
      ports::PhaseChanged{ports::Phase::kTraining, ports::Phase::kPaused, "x"},
      ports::PlanAdopted{3, 100},
      ports::StateTaken{NodeId("box-2"), 50},
      ports::Evaluated{200, {}},
      ports::LinkUp{NodeId("box-2"), "10.0.0.2:7600"},
      ports::LinkDown{NodeId("box-2"), absl::UnavailableError("gone")},
      ports::PeerUnreachable{"10.0.0.3:7600", absl::UnavailableError("no")},
      ports::MessageRejected{NodeId("box-2"), ports::RefuseReason::kOtherRun,
                             "run x"},
      ports::NeighboursMissed{7, 3, 2},
      ports::LearnerFailed{9, absl::DataLossError("loss is nan")},
      ports::SecurityNote{true, "the certificate expires in 3 days"},
      ports::RecordCame{true, NodeId("box-2"), "plan 7 of alice"},
      ports::Disagrees{NodeId("box-2"), "classes: 3 here, 2 there"},
      ports::LearnsAlone{"no model came from its neighbour"},
      ports::LearnsAlone{},
      ports::DataNote{false, "60 rows taken up (40 before)"},
      ports::MemberChanged{NodeId("b"), false, "is dead"}};
  for (const ports::NodeEvent& event : events) {
    ASSERT_TRUE(IsWatched(event));
    dfl::control::v1::WatchResponse response;
    ToProto({absl::FromUnixSeconds(1), event}, *response.add_events());
    const client::WatchUpdate update = client::FromProto(response);
    EXPECT_NE(update.events[0].kind, "") << event.index();
    EXPECT_NE(update.events[0].text, "") << event.index();
    EXPECT_EQ(update.events[0].unix_nanos, 1000000000);
  }
  EXPECT_FALSE(IsWatched(ports::StepFinished{}));
}

}  // namespace
}  // namespace dfl::control
