// Every call of the control service over a real unix socket, with the client
// library at the other end.
#include "daemon/control/control_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/unit/control/control_server_fixture.h"

namespace dfl::control {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(ControlServerTest, TellsVersionAndStatus) {
  Start();
  const auto version = client_->Version();
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(version->version, "0.1.0");
  EXPECT_EQ(version->node, "box-1");
  EXPECT_EQ(version->control_protocol, 1u);
  EXPECT_THAT(version->libraries, ElementsAre("torch 2.6.0"));
  const auto status = client_->Status();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->node.node, "box-1");
  EXPECT_EQ(status->node.step, 1000);
  EXPECT_EQ(status->uptime_seconds, 60);
}

TEST_F(ControlServerTest, SocketIsForOwnerAndGroupOnlyAndGoesWithTheServer) {
  Start();
  struct stat info{};
  ASSERT_EQ(stat(options_.unix_socket.c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0660u);
  server_.reset();
  EXPECT_NE(stat(options_.unix_socket.c_str(), &info), 0);
}

TEST_F(ControlServerTest, ASecondServerOnALiveSocketIsRefused) {
  Start();
  const auto second = ControlServer::Start(options_, backend_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(
      std::string(second.status().message()),
      AllOf(HasSubstr(options_.unix_socket), HasSubstr("address in use")));
  // The first one goes on.
  EXPECT_TRUE(client_->Status().ok());
}

TEST_F(ControlServerTest, AStaleSocketIsReplacedAndAnotherFileIsNot) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_GE(fd, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  options_.unix_socket.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)),
            0);
  close(fd);  // as a killed daemon leaves it
  Start();
  EXPECT_TRUE(client_->Status().ok());

  ControlServerOptions other = options_;
  other.unix_socket = folder_.File("plain");
  std::ofstream(other.unix_socket) << "precious";
  const auto refused = ControlServer::Start(other, backend_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kAlreadyExists);
  std::ifstream kept(other.unix_socket);
  std::string word;
  kept >> word;
  EXPECT_EQ(word, "precious");
}

TEST_F(ControlServerTest, BadSocketPathsAreNamed) {
  options_.unix_socket = folder_.File("no/such/folder.sock");
  auto refused = ControlServer::Start(options_, backend_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("no/such/folder.sock"));
  options_.unix_socket = "/tmp/" + std::string(200, 'x');
  refused = ControlServer::Start(options_, backend_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("107"));
}

TEST_F(ControlServerTest, ListensOnNetworkAddressesAndRefusesTakenOnes) {
  options_.addresses = {"127.0.0.1:0"};
  Start();
  ASSERT_EQ(server_->addresses().size(), 2u);
  const std::string bound = server_->addresses()[1];
  auto over_tcp = client::ControlClient::Connect("insecure:" + bound);
  ASSERT_TRUE(over_tcp.ok()) << over_tcp.status();
  EXPECT_TRUE((*over_tcp)->Status().ok());
  ASSERT_TRUE((*over_tcp)->Train(client::TrainAction::kPause).ok());
  EXPECT_THAT(audit().back().caller.name, HasSubstr("127.0.0.1:"));

  ControlServerOptions second;
  second.addresses = {bound};
  const auto refused = ControlServer::Start(second, backend_);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(refused.status().message()),
              AllOf(HasSubstr(bound), HasSubstr("ddress already in use")));
  second.addresses = {"nonsense"};
  EXPECT_EQ(ControlServer::Start(second, backend_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ControlServerTest, TrainOrdersReachTheNodeAndAreAudited) {
  Start();
  EXPECT_EQ(*client_->Train(client::TrainAction::kStart),
            client::Phase::kTraining);
  EXPECT_EQ(*client_->Train(client::TrainAction::kPause),
            client::Phase::kPaused);
  EXPECT_EQ(*client_->Train(client::TrainAction::kResume),
            client::Phase::kTraining);
  EXPECT_EQ(*client_->Train(client::TrainAction::kStop),
            client::Phase::kStopped);
  EXPECT_THAT(backend_.orders(),
              ElementsAre("train 1", "train 2", "train 3", "train 4"));
  const auto records = audit();
  ASSERT_EQ(records.size(), 4u);
  EXPECT_EQ(records[1].what, "train pause");
  EXPECT_EQ(records[1].caller.name,
            absl::StrCat("uid ", geteuid(), " (pid ", getpid(), ")"));
  EXPECT_TRUE(records[1].status.ok());
}

TEST_F(ControlServerTest, ErrorsOfTheNodeReachTheCallerUnchanged) {
  Start();
  backend_.SetFailure(absl::FailedPreconditionError("is idle: no plan"));
  const auto refused = client_->Train(client::TrainAction::kPause);
  EXPECT_EQ(refused.status(),
            absl::FailedPreconditionError("is idle: no plan"));
  EXPECT_EQ(audit().back().status.code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(ControlServerTest, ANodeThatDoesNotAnswerEndsInADeadlineNotInAHang) {
  options_.max_call_time = absl::Milliseconds(50);
  Start();
  backend_.KeepTrainQuiet();
  const auto late = client_->Train(client::TrainAction::kPause);
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.status().message()),
              AllOf(HasSubstr("did not answer within 50ms"),
                    HasSubstr("will not be carried out")));
  // What its caller was told will not happen must not.
  EXPECT_THAT(backend_.MayBegin(), ElementsAre(false));
  // The answer that comes after all hurts nobody.
  backend_.ReleaseTrain();
  EXPECT_TRUE(client_->Status().ok());
}

TEST_F(ControlServerTest, GoesDownWhileACallAndAWatchAreUnderWay) {
  Start();
  backend_.KeepTrainQuiet();
  absl::Notification watching;
  absl::Status watch_end;
  absl::Status train_end;
  std::thread watcher([&] {
    watch_end = client_->Watch(
        absl::Seconds(1),
        [&](const client::WatchUpdate&) {
          if (!watching.HasBeenNotified()) watching.Notify();
          return true;
        },
        nullptr);
  });
  auto other = *client::ControlClient::Connect(server_->addresses()[0]);
  std::thread trainer(
      [&] { train_end = other->Train(client::TrainAction::kPause).status(); });
  watching.WaitForNotification();
  ASSERT_TRUE(Eventually([&] { return backend_.orders().size() == 1; }));
  const absl::Time before = absl::Now();
  server_.reset();
  EXPECT_LT(absl::Now() - before, absl::Seconds(5));
  watcher.join();
  trainer.join();
  EXPECT_EQ(watch_end.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(train_end.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(backend_.subscribers(), 0);
  backend_.ReleaseTrain();
}

constexpr char kPlan[] = R"(version: 1
run: 00c0ffee00c0ffee
seed: 7
members: [box-1, box-2, box-3]
model:
  kind: cnn
)";

TEST_F(ControlServerTest, AppliesAPlanUnderOptimisticConcurrency) {
  Start();
  EXPECT_EQ(client_->Plan()->version, 0u);
  client::ApplyPlanOptions apply;
  apply.yaml = kPlan;
  apply.expected_version = 0;
  const auto applied = client_->ApplyPlan(apply);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(applied->version, 1u);
  EXPECT_EQ(applied->run_id, "00c0ffee00c0ffee");
  EXPECT_THAT(applied->warnings, ElementsAre("a warning of the daemon"));
  EXPECT_FALSE(applied->facts.has_value());
  EXPECT_EQ(client_->Plan()->yaml, kPlan);

  // Somebody who saw version 0 comes too late with another plan.
  apply.yaml = std::string(kPlan) + "batch_size: 8\n";
  EXPECT_EQ(client_->ApplyPlan(apply).status().code(),
            absl::StatusCode::kAborted);
  apply.yaml = kPlan;
  EXPECT_TRUE(client_->ApplyPlan(apply)->unchanged);
  apply.expected_version.reset();
  EXPECT_TRUE(client_->ApplyPlan(apply)->unchanged);
}

TEST_F(ControlServerTest, ADryRunTellsTheModelsFactsAndChangesNothing) {
  Start();
  client::ApplyPlanOptions apply;
  apply.yaml = kPlan;
  apply.dry_run = true;
  const auto result = client_->ApplyPlan(apply);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->facts.has_value());
  EXPECT_EQ(result->facts->parameter_count, 268362);
  EXPECT_EQ(result->facts->memory_bytes, 5000000);
  ASSERT_EQ(result->facts->memory_parts.size(), 2U);
  EXPECT_EQ(result->facts->memory_parts[1].what, "for 3 neighbours: vectors");
  EXPECT_EQ(result->facts->memory_parts[1].bytes, 3000000);
  EXPECT_EQ(result->facts->memory_limit_bytes, 8000000);
  EXPECT_EQ(result->facts->spectral_gap, 0.5);
  EXPECT_EQ(client_->Plan()->version, 0u);
  EXPECT_THAT(audit(), IsEmpty());
}

TEST_F(ControlServerTest, RecordsGoInAndAreListed) {
  backend_.SetCluster("plant-4");
  RecordInfo info;
  info.kind = "ban";
  info.subject = "spiffe://plant-4/node/box-9";
  info.counter = 3;
  info.author = "spiffe://plant-4/operator/alice";
  info.signed_at = absl::FromUnixSeconds(1700000000);
  info.summary = "banned: stolen";
  info.current = true;
  info.body_sha256 = "ab12";
  backend_.SetRecords({info});
  Start();
  EXPECT_EQ(client_->Version()->cluster, "plant-4");
  EXPECT_FALSE(client_->PutRecord("a record")->unchanged);
  EXPECT_TRUE(client_->PutRecord("a record")->unchanged);
  EXPECT_THAT(backend_.records(), ElementsAre("a record", "a record"));
  EXPECT_EQ(audit().back().what, "bring a record that cannot be read");
  record::v1::RecordBody body;
  body.set_kind(record::v1::RECORD_KIND_BAN);
  body.set_counter(3);
  body.set_subject("spiffe://plant-4/node/box-9");
  body.set_author("spiffe://plant-4/operator/alice");
  record::v1::SignedRecord ban;
  ban.set_body(body.SerializeAsString());
  ban.set_signature("a signature");
  EXPECT_FALSE(client_->PutRecord(ban.SerializeAsString())->unchanged);
  EXPECT_EQ(audit().back().what,
            "bring record ban 3 of spiffe://plant-4/node/box-9, signed as "
            "spiffe://plant-4/operator/alice");
  const auto listed = client_->ListRecords();
  ASSERT_TRUE(listed.ok()) << listed.status();
  ASSERT_EQ(listed->size(), 1u);
  const client::RecordInfo& told = listed->front();
  EXPECT_EQ(told.kind, "ban");
  EXPECT_EQ(told.subject, "spiffe://plant-4/node/box-9");
  EXPECT_EQ(told.counter, 3u);
  EXPECT_EQ(told.author, "spiffe://plant-4/operator/alice");
  EXPECT_EQ(told.unix_nanos, 1700000000000000000);
  EXPECT_EQ(told.summary, "banned: stolen");
  EXPECT_TRUE(told.current);
  EXPECT_EQ(told.body_sha256, "ab12");

  backend_.SetFailure(absl::PermissionDeniedError("a viewer's signature"));
  EXPECT_EQ(client_->PutRecord("another").status(),
            absl::PermissionDeniedError("a viewer's signature"));
  EXPECT_EQ(client_->PutRecord("").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(
          client_->PutRecord(std::string((8 << 20) + (64 << 10) + 1, 'x'))
              .status()
              .message()),
      HasSubstr("allowed: up to 8454144"));
}

TEST_F(ControlServerTest, ASecuredNodeTakesSignedPlansOnly) {
  backend_.SetCluster("plant-4");
  Start();
  client::ApplyPlanOptions apply;
  apply.yaml = kPlan;
  const absl::Status refused = client_->ApplyPlan(apply).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("also not from root"), HasSubstr("--identity")));
  EXPECT_EQ(audit().back().status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(backend_.plan().version, 0u);
  // Asking what it would mean is no order.
  apply.dry_run = true;
  EXPECT_TRUE(client_->ApplyPlan(apply).ok());

  record::v1::SignedRecord record;
  record.set_content(kPlan);
  apply.dry_run = false;
  apply.record = record.SerializeAsString();
  EXPECT_EQ(client_->ApplyPlan(apply).status().code(),
            absl::StatusCode::kInvalidArgument);  // both are set
  apply.yaml = "";
  const auto applied = client_->ApplyPlan(apply);
  ASSERT_TRUE(applied.ok()) << applied.status();
  EXPECT_EQ(backend_.plan().yaml, kPlan);
  EXPECT_THAT(backend_.records(), ElementsAre(apply.record));
}

TEST_F(ControlServerTest, BadPlansAreRefused) {
  Start();
  client::ApplyPlanOptions apply;
  EXPECT_EQ(client_->ApplyPlan(apply).status().code(),
            absl::StatusCode::kInvalidArgument);
  apply.yaml = "topology: {kind: rign}\nmembers: [a, b]\n";
  const absl::Status refused = client_->ApplyPlan(apply).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("ring"));
  apply.yaml = std::string((8 << 20) + 1, '#');
  EXPECT_THAT(std::string(client_->ApplyPlan(apply).status().message()),
              HasSubstr("allowed: up to 8388608"));
}

TEST_F(ControlServerTest, PeersAreAddedListedAndRemoved) {
  Start();
  EXPECT_TRUE(*client_->AddPeer("10.0.0.9:7600"));
  EXPECT_FALSE(*client_->AddPeer("10.0.0.9:7600"));
  const auto peers = client_->Peers();
  ASSERT_TRUE(peers.ok());
  ASSERT_EQ(peers->addresses.size(), 1u);
  EXPECT_EQ(peers->addresses[0].origin, "control");
  ASSERT_EQ(peers->peers.size(), 2u);
  EXPECT_EQ(peers->peers[1].last_error, "connection refused");
  EXPECT_TRUE(client_->RemovePeer("10.0.0.9:7600").ok());
  EXPECT_EQ(client_->RemovePeer("10.0.0.9:7600").code(),
            absl::StatusCode::kNotFound);
  EXPECT_EQ(client_->AddPeer("nonsense").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ControlServerTest, TellsSettingsWithTheirOrigin) {
  Start();
  const auto settings = client_->Settings();
  ASSERT_TRUE(settings.ok());
  ASSERT_EQ(settings->size(), 2u);
  EXPECT_EQ((*settings)[0].key, "name");
  EXPECT_EQ((*settings)[0].origin, "/etc/dfld/dfld.yaml:1");
}

TEST_F(ControlServerTest, AModelOfSeveralPartsGoesOutAndIn) {
  std::string bytes((5 << 20) / 2 + 13, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 2654435761u >> 7);
  }
  backend_.SetModelFile(bytes);
  Start();
  std::string got;
  const auto exported = client_->ExportModel(
      client::ModelFormat::kSafetensors,
      [&](absl::string_view data, int64_t total) {
        EXPECT_EQ(total, static_cast<int64_t>(bytes.size()));
        got.append(data.data(), data.size());
        return absl::OkStatus();
      });
  ASSERT_TRUE(exported.ok()) << exported.status();
  EXPECT_EQ(exported->step, 1000);
  EXPECT_EQ(exported->description, "{\"step\": \"1000\"}");
  EXPECT_TRUE(got == bytes);
  EXPECT_EQ(backend_.open_files(), 0);

  client::ImportOptions wanted;
  wanted.only = {"backbone.*"};
  wanted.init_missing = true;
  wanted.strip_prefix = "module.";
  wanted.other_names = true;
  const auto imported = client_->ImportModel(
      client::ModelFormat::kSafetensors, static_cast<int64_t>(bytes.size()),
      [&](int64_t offset, int64_t max_bytes) -> absl::StatusOr<std::string> {
        return bytes.substr(static_cast<size_t>(offset),
                            static_cast<size_t>(max_bytes));
      },
      wanted);
  ASSERT_TRUE(imported.ok()) << imported.status();
  EXPECT_EQ(imported->parameter_count, static_cast<int64_t>(bytes.size() / 4));
  EXPECT_TRUE(backend_.imported() == bytes);
  EXPECT_THAT(imported->notes, ElementsAre("skipped: \"steps\" (I64)"));
  const ImportRequest request = backend_.import_request();
  EXPECT_THAT(request.only, ElementsAre("backbone.*"));
  EXPECT_TRUE(request.init_missing);
  EXPECT_EQ(request.strip_prefix, "module.");
  EXPECT_TRUE(request.other_names);
  EXPECT_TRUE(Eventually([&] { return backend_.open_files() == 0; }));
}

TEST_F(ControlServerTest, ARefusedModelFileLeavesNothingBehind) {
  Start();
  const auto refused = client_->ImportModel(
      client::ModelFormat::kSafetensors, 3,
      [](int64_t, int64_t) -> absl::StatusOr<std::string> { return "!ab"; },
      {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.status().message()),
              HasSubstr("conv1.weight"));
  EXPECT_TRUE(Eventually([&] { return backend_.open_files() == 0; }));
  // TorchScript is code and is not taken.
  EXPECT_EQ(
      client_
          ->ImportModel(client::ModelFormat::kTorchScript, 3,
                        [](int64_t, int64_t) -> absl::StatusOr<std::string> {
                          return "abc";
                        },
                        {})
          .status()
          .code(),
      absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(client_
                ->ExportModel(
                    client::ModelFormat::kTorchScript,
                    [](absl::string_view, int64_t) { return absl::OkStatus(); })
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ControlServerTest, AWriterThatFailsEndsTheExport) {
  backend_.SetModelFile(std::string(3 << 20, 'x'));
  Start();
  const auto ended = client_->ExportModel(
      client::ModelFormat::kSafetensors, [](absl::string_view, int64_t) {
        return absl::ResourceExhaustedError("disk is full");
      });
  EXPECT_EQ(ended.status(), absl::ResourceExhaustedError("disk is full"));
  EXPECT_EQ(backend_.open_files(), 0);
}

TEST_F(ControlServerTest, WatchTellsAtOnceAndAfterUrgentEvents) {
  Start();
  std::vector<client::WatchUpdate> updates;
  const absl::Status end = client_->Watch(
      absl::Hours(1),  // only urgent events come in this test's time
      [&](const client::WatchUpdate& update) {
        updates.push_back(update);
        if (updates.size() == 1) {
          backend_.Emit(ports::StepFinished{5, 0.5});
          backend_.Emit(ports::LinkUp{NodeId("box-2"), "10.0.0.2:7600"});
          backend_.Emit(ports::PlanAdopted{4, 1000});
        }
        return updates.size() < 2;
      },
      nullptr);
  ASSERT_TRUE(end.ok()) << end;
  ASSERT_EQ(updates.size(), 2u);
  EXPECT_EQ(updates[0].status.node.node, "box-1");
  EXPECT_THAT(updates[0].events, IsEmpty());
  ASSERT_EQ(updates[1].events.size(), 2u);  // steps are not told one by one
  EXPECT_EQ(updates[1].events[0].kind, "link-up");
  EXPECT_EQ(updates[1].events[0].peer, "box-2");
  EXPECT_EQ(updates[1].events[1].kind, "plan-adopted");
  EXPECT_EQ(updates[1].events[1].step, 1000);
  EXPECT_EQ(updates[1].events[1].unix_nanos, 1700000000000000000);
}

TEST_F(ControlServerTest, WatchTellsAtItsInterval) {
  Start();
  int updates = 0;
  const absl::Status end = client_->Watch(
      absl::Milliseconds(100),
      [&](const client::WatchUpdate&) { return ++updates < 3; }, nullptr);
  EXPECT_TRUE(end.ok()) << end;
  EXPECT_EQ(updates, 3);
}

TEST_F(ControlServerTest, TooManyWatchersAreTurnedAwayAndPlacesComeFree) {
  options_.max_watchers = 1;
  Start();
  const absl::Status end = client_->Watch(
      absl::Seconds(1),
      [&](const client::WatchUpdate&) {
        auto second = *client::ControlClient::Connect(server_->addresses()[0]);
        EXPECT_EQ(
            second
                ->Watch(
                    absl::Seconds(1),
                    [](const client::WatchUpdate&) { return false; }, nullptr)
                .code(),
            absl::StatusCode::kResourceExhausted);
        return false;
      },
      nullptr);
  EXPECT_TRUE(end.ok()) << end;
  EXPECT_TRUE(Eventually([&] {
    return client_
        ->Watch(
            absl::Seconds(1), [](const client::WatchUpdate&) { return false; },
            nullptr)
        .ok();
  }));
}

}  // namespace
}  // namespace dfl::control
