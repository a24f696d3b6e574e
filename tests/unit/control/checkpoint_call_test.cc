// Checkpoints through the control service and the client library.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dfl/control/v1/control.grpc.pb.h"
#include "tests/unit/control/control_server_fixture.h"

namespace dfl::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CheckpointCallTest : public ControlServerTest {
 protected:
  FakeCheckpoints& checkpoints() { return backend_.checkpoints(); }

  // Sends `bytes` in parts of that size.
  absl::StatusOr<client::RestoreResult> Restore(
      const std::string& bytes, const client::RestoreOptions& options = {}) {
    return client_->RestoreCheckpoint(
        static_cast<int64_t>(bytes.size()),
        [&](int64_t offset, int64_t max_bytes) -> absl::StatusOr<std::string> {
          ++parts_;
          return bytes.substr(static_cast<size_t>(offset),
                              static_cast<size_t>(max_bytes));
        },
        options);
  }
  std::vector<std::string> Audited() {
    std::vector<std::string> what;
    for (const AuditRecord& record : audit()) what.push_back(record.what);
    return what;
  }

  int parts_ = 0;
};

void ExpectSample(const client::CheckpointInfo& got, int64_t iteration) {
  const CheckpointInfo want = SampleCheckpoint("box-1", iteration);
  EXPECT_EQ(got.file, want.file);
  EXPECT_EQ(got.bytes, want.bytes);
  EXPECT_EQ(got.unix_nanos, absl::ToUnixNanos(want.written));
  EXPECT_EQ(got.node, want.node);
  EXPECT_EQ(got.run_id, want.run_id);
  EXPECT_EQ(got.plan_version, want.plan_version);
  EXPECT_EQ(got.algorithm, want.algorithm);
  EXPECT_EQ(got.iteration, want.iteration);
  EXPECT_EQ(got.steps, want.steps);
  EXPECT_EQ(got.rounds, want.rounds);
  EXPECT_EQ(got.tracker_epoch, want.tracker_epoch);
}

TEST_F(CheckpointCallTest, TheListCrossesWithEveryField) {
  Start();
  const auto list = client_->Checkpoints();
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->node, "box-1");
  ASSERT_EQ(list->checkpoints.size(), 2u);
  ExpectSample(list->checkpoints[0], 200);
  ExpectSample(list->checkpoints[1], 101);
  ASSERT_EQ(list->aside.size(), 1u);
  EXPECT_EQ(list->aside[0].file, "checkpoint.1.aside");
  EXPECT_EQ(list->aside[0].bytes, 77);
  EXPECT_EQ(list->aside[0].reason, "it is torn");
  EXPECT_THAT(Audited(), ElementsAre());
}

TEST_F(CheckpointCallTest, OneIsSavedAndTheErrorSaysWhyNot) {
  Start();
  const auto saved = client_->SaveCheckpoint();
  ASSERT_TRUE(saved.ok()) << saved.status();
  ExpectSample(*saved, 300);
  const auto nothing = absl::FailedPreconditionError("nothing to write");
  checkpoints().FailWith(nothing);
  EXPECT_EQ(client_->SaveCheckpoint().status(), nothing);
  EXPECT_THAT(Audited(), ElementsAre("save a checkpoint", "save a checkpoint"));
}

// A disk may take longer than any other order.
TEST_F(CheckpointCallTest, ASlowDiskHasItsOwnLimit) {
  options_.max_call_time = absl::Milliseconds(1);
  options_.max_disk_time = absl::Milliseconds(50);
  Start();
  checkpoints().KeepSaveQuiet();
  const auto late = client_->SaveCheckpoint();
  EXPECT_EQ(late.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(late.status().message()),
              HasSubstr("did not answer within 50ms"));
}

TEST_F(CheckpointCallTest, OneOfSeveralPartsGoesOutAndComesBack) {
  std::string bytes((5 << 20) / 2 + 13, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<char>(i * 2654435761u >> 7);
  }
  checkpoints().SetFile(bytes);
  Start();
  std::string got;
  const auto exported =
      client_->ExportCheckpoint([&](absl::string_view data, int64_t total) {
        EXPECT_EQ(total, static_cast<int64_t>(bytes.size()));
        got.append(data.data(), data.size());
        return absl::OkStatus();
      });
  ASSERT_TRUE(exported.ok()) << exported.status();
  ExpectSample(*exported, 300);
  EXPECT_TRUE(got == bytes);
  EXPECT_TRUE(Eventually([&] { return checkpoints().open_files() == 0; }));

  client::RestoreOptions options;
  options.other_version = true;
  const auto restored = Restore(bytes, options);
  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(parts_, 3);
  ExpectSample(restored->checkpoint, 300);
  EXPECT_EQ(restored->phase, client::Phase::kPaused);
  EXPECT_TRUE(checkpoints().restored() == bytes);
  EXPECT_EQ(checkpoints().request().total_bytes,
            static_cast<int64_t>(bytes.size()));
  EXPECT_TRUE(checkpoints().request().other_version);
  EXPECT_TRUE(Eventually([&] { return checkpoints().open_files() == 0; }));
  EXPECT_THAT(Audited(),
              ElementsAre("export a checkpoint",
                          absl::StrCat("begin to restore a checkpoint of ",
                                       bytes.size(), " bytes by force"),
                          "restore a checkpoint"));
}

TEST_F(CheckpointCallTest, WhatIsRefusedLeavesNothingBehind) {
  Start();
  // By its head: the rest is not sent.
  const auto of_another =
      absl::FailedPreconditionError("the checkpoint is of node box-3");
  checkpoints().RefuseHead(of_another);
  EXPECT_EQ(Restore(std::string(3 << 20, 'x')).status(), of_another);
  EXPECT_EQ(parts_, 1);
  EXPECT_TRUE(Eventually([&] { return checkpoints().open_files() == 0; }));
  // As a whole.
  checkpoints().RefuseHead(absl::OkStatus());
  EXPECT_EQ(Restore("!ab").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Eventually([&] { return checkpoints().open_files() == 0; }));
  // Before anything is sent.
  checkpoints().FailWith(absl::FailedPreconditionError("it trains"));
  parts_ = 0;
  EXPECT_EQ(Restore("abc").status(),
            absl::FailedPreconditionError("it trains"));
  EXPECT_EQ(parts_, 0);
  EXPECT_EQ(Restore("").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(checkpoints().restored(), "");
}

TEST_F(CheckpointCallTest, AReaderThatFailsEndsTheRestore) {
  Start();
  const auto failed = absl::InternalError("the stick was pulled out");
  EXPECT_EQ(client_
                ->RestoreCheckpoint(
                    3,
                    [&](int64_t, int64_t) -> absl::StatusOr<std::string> {
                      return failed;
                    },
                    {})
                .status(),
            failed);
  EXPECT_TRUE(Eventually([&] { return checkpoints().open_files() == 0; }));
}

// A token is for what it was given for.
TEST_F(CheckpointCallTest, AModelsTokenRestoresNothing) {
  Start();
  const auto stub = dfl::control::v1::ControlService::NewStub(
      grpc::CreateChannel(absl::StrCat("unix:", options_.unix_socket),
                          grpc::InsecureChannelCredentials()));
  dfl::control::v1::BeginImportRequest begin;
  begin.set_format(dfl::control::v1::MODEL_FORMAT_SAFETENSORS);
  begin.set_total_bytes(1);
  dfl::control::v1::BeginImportResponse opened;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub->BeginImport(&context, begin, &opened).ok());
  }
  grpc::ClientContext context;
  dfl::control::v1::CommitRestoreRequest commit;
  commit.set_token(opened.token());
  dfl::control::v1::CommitRestoreResponse committed;
  const grpc::Status status = stub->CommitRestore(&context, commit, &committed);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("another kind of transfer"));
}

}  // namespace
}  // namespace dfl::control
