// What a client of another make than ours may send.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "absl/strings/match.h"

#include "dfl/control/v1/control.grpc.pb.h"
#include "tests/unit/control/control_server_fixture.h"

namespace dfl::control {
namespace {

using ::testing::HasSubstr;

class RawCallTest : public ControlServerTest {
 protected:
  void Start() {
    ControlServerTest::Start();
    stub_ = dfl::control::v1::ControlService::NewStub(grpc::CreateChannel(
        "unix:" + options_.unix_socket, grpc::InsecureChannelCredentials()));
  }
  std::unique_ptr<dfl::control::v1::ControlService::Stub> stub_;
};

TEST_F(RawCallTest, UnsetEnumsAreRefused) {
  Start();
  grpc::ClientContext context;
  dfl::control::v1::TrainResponse response;
  const grpc::Status status =
      stub_->Train(&context, dfl::control::v1::TrainRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("start, pause, resume, stop"));
  grpc::ClientContext second;
  dfl::control::v1::BeginExportResponse opened;
  EXPECT_EQ(stub_
                ->BeginExport(&second, dfl::control::v1::BeginExportRequest(),
                              &opened)
                .error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

// Sockets that this process has open.
int OpenSockets() {
  int count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string target =
        std::filesystem::read_symlink(entry.path(), gone).string();
    count += absl::StartsWith(target, "socket:") ? 1 : 0;
  }
  return count;
}

// Who calls is known by the connection's descriptor. If its number were free
// while a call still lives, the next connection could lend the call its role.
TEST_F(RawCallTest, AConnectionStaysOpenAsLongAsACallOfItLives) {
  Start();
  backend_.KeepTrainQuiet();
  const int before = OpenSockets();
  {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub =
        dfl::control::v1::ControlService::NewStub(grpc::CreateCustomChannel(
            "unix:" + options_.unix_socket, grpc::InsecureChannelCredentials(),
            arguments));
    grpc::ClientContext context;
    dfl::control::v1::TrainRequest request;
    request.set_action(dfl::control::v1::TRAIN_ACTION_PAUSE);
    dfl::control::v1::TrainResponse response;
    std::thread call([&] { stub->Train(&context, request, &response); });
    ASSERT_TRUE(Eventually([&] { return backend_.orders().size() == 1; }));
    EXPECT_EQ(OpenSockets(), before + 2);
    context.TryCancel();
    call.join();
  }
  // The caller's end goes, the daemon's does not.
  EXPECT_TRUE(Eventually([&] { return OpenSockets() == before + 1; }));
  EXPECT_TRUE(client_->Status().ok());  // whose own connection is a second one
  EXPECT_EQ(OpenSockets(), before + 3);
  backend_.ReleaseTrain();
  EXPECT_TRUE(Eventually([&] { return OpenSockets() == before + 2; }));
}

TEST_F(RawCallTest, ImportPartsComeInOrderAndMayBeRepeated) {
  Start();
  dfl::control::v1::BeginImportRequest begin;
  begin.set_format(dfl::control::v1::MODEL_FORMAT_SAFETENSORS);
  begin.set_total_bytes(6);
  dfl::control::v1::BeginImportResponse opened;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(stub_->BeginImport(&context, begin, &opened).ok());
  }
  const auto write = [&](int64_t offset, const std::string& data) {
    grpc::ClientContext context;
    dfl::control::v1::WriteImportRequest request;
    request.set_token(opened.token());
    request.set_offset(offset);
    request.set_data(data);
    dfl::control::v1::WriteImportResponse response;
    const grpc::Status status =
        stub_->WriteImport(&context, request, &response);
    return status.ok() ? static_cast<int>(response.received_bytes())
                       : -static_cast<int>(status.error_code());
  };
  const int out_of_range = -static_cast<int>(grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(write(0, "abcd"), 4);
  EXPECT_EQ(write(0, "abcd"), 4);             // its answer was lost
  EXPECT_EQ(write(5, "f"), out_of_range);     // a gap
  EXPECT_EQ(write(4, "efgh"), out_of_range);  // beyond the end
  const auto commit = [&] {
    grpc::ClientContext context;
    dfl::control::v1::CommitImportRequest request;
    request.set_token(opened.token());
    dfl::control::v1::CommitImportResponse response;
    return stub_->CommitImport(&context, request, &response).error_code();
  };
  EXPECT_EQ(commit(), grpc::StatusCode::FAILED_PRECONDITION);  // incomplete
  EXPECT_EQ(write(4, "ef"), 6);
  EXPECT_EQ(commit(), grpc::StatusCode::OK);
  EXPECT_EQ(backend_.imported(), "abcdef");
  EXPECT_EQ(commit(), grpc::StatusCode::NOT_FOUND);  // once
}

TEST_F(RawCallTest, UnusedTransfersAreForgottenAndTheirNumberIsBounded) {
  options_.transfer_idle_time = absl::Milliseconds(50);
  options_.max_transfers = 2;
  Start();
  std::string token;
  const auto begin = [&] {
    grpc::ClientContext context;
    dfl::control::v1::BeginExportRequest request;
    request.set_format(dfl::control::v1::MODEL_FORMAT_SAFETENSORS);
    dfl::control::v1::BeginExportResponse response;
    const grpc::Status status =
        stub_->BeginExport(&context, request, &response);
    token = response.token();
    return status.error_code();
  };
  EXPECT_EQ(begin(), grpc::StatusCode::OK);
  EXPECT_EQ(begin(), grpc::StatusCode::OK);
  EXPECT_TRUE(Eventually([&] { return backend_.open_files() == 0; }));
  grpc::ClientContext context;
  dfl::control::v1::ReadExportRequest request;
  request.set_token(token);
  dfl::control::v1::ReadExportResponse response;
  EXPECT_EQ(stub_->ReadExport(&context, request, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(RawCallTest, AThirdTransferIsRefusedWhileTwoAreOpen) {
  options_.max_transfers = 2;
  Start();
  const auto begin = [&] {
    grpc::ClientContext context;
    dfl::control::v1::BeginExportRequest request;
    request.set_format(dfl::control::v1::MODEL_FORMAT_SAFETENSORS);
    dfl::control::v1::BeginExportResponse response;
    return stub_->BeginExport(&context, request, &response).error_code();
  };
  EXPECT_EQ(begin(), grpc::StatusCode::OK);
  EXPECT_EQ(begin(), grpc::StatusCode::OK);
  EXPECT_EQ(begin(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  server_.reset();
  EXPECT_EQ(backend_.open_files(), 0);  // nothing outlives the server
}

}  // namespace
}  // namespace dfl::control
