// Who may call what: over TLS with certificates of people, and on the unix
// socket.
#include "daemon/control/gate.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "dfl/control/v1/control.grpc.pb.h"
#include "tests/support/made_credentials.h"
#include "tests/unit/control/tls_server_fixture.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;
using ::testing::AllOf;
using ::testing::HasSubstr;

const google::protobuf::ServiceDescriptor& Contract() {
  return *pb::GetVersionRequest::descriptor()->file()->FindServiceByName(
      "ControlService");
}

TEST(LeastRoles, EachMethodHasOne) {
  const auto roles = LeastRoles();
  EXPECT_EQ(roles.size(), static_cast<size_t>(Contract().method_count()));
  EXPECT_EQ(roles.find("GetStatus")->second, Role::kViewer);
  EXPECT_EQ(roles.find("PutRecord")->second, Role::kOperator);
  // A checkpoint holds the model, and more: as for its export and import.
  EXPECT_EQ(roles.find("ListCheckpoints")->second, Role::kViewer);
  for (const char* method :
       {"SaveCheckpoint", "BeginCheckpointExport", "BeginRestore",
        "CommitRestore", "ReadExport", "WriteImport"}) {
    EXPECT_EQ(roles.find(method)->second, Role::kOperator) << method;
  }
}

class GateTest : public TlsServerTest {
 protected:
  void SetUp() override {
    StartTls(tls::MakeCredentials(authority_, tls::NodeIdentity("box-1")));
  }

  // An empty request to any method, also to one that streams.
  static grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                           const std::string& method) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(10));
    const grpc::ByteBuffer request(nullptr, 0);
    grpc::ByteBuffer response;
    // Held while the call begins: ThreadSanitizer does not see that gRPC orders
    // what is before a call and its answer.
    absl::Mutex mutex;
    std::optional<grpc::Status> result;
    const absl::MutexLock lock(&mutex);
    stub.UnaryCall(&context, "/dfl.control.v1.ControlService/" + method, {},
                   &request, &response, [&](const grpc::Status& status) {
                     const absl::MutexLock answered(&mutex);
                     result = status;
                   });
    const auto came = [&] { return result.has_value(); };
    mutex.Await(absl::Condition(&came));
    return *result;
  }

  static bool Passes(const grpc::Status& status) {
    return status.error_code() != grpc::StatusCode::PERMISSION_DENIED &&
           status.error_code() != grpc::StatusCode::UNAVAILABLE;
  }
};

TEST_F(GateTest, EachMethodRefusesACallerOneRoleTooLow) {
  const auto viewer = DialAs(tls::Role::kViewer);
  // Nobody can connect without a role, but one can be lost.
  const auto lost = DialAs({"plant-4", tls::Role::kViewer, "eve"});
  ASSERT_TRUE(Passes(Call(lost, "GetVersion")));
  const std::vector<tls::Identity> banned = {
      {"plant-4", tls::Role::kViewer, "eve"}};
  security_->SetBanned(banned);
  size_t refused = 0;
  for (int i = 0; i < Contract().method_count(); ++i) {
    const auto& method = *Contract().method(i);
    const pb::Role least = method.options().GetExtension(pb::least_role);
    ASSERT_TRUE(least == pb::ROLE_VIEWER || least == pb::ROLE_OPERATOR)
        << method.name() << ": teach this test its role";
    const grpc::Status status =
        Call(least == pb::ROLE_VIEWER ? lost : viewer, method.name());
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED)
        << method.name() << ": " << status.error_message();
    ASSERT_EQ(audit().size(), ++refused) << method.name();
    EXPECT_EQ(audit().back().what, "call " + method.name());
    EXPECT_EQ(audit().back().status.code(),
              absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(audit().back().caller.name,
                HasSubstr(least == pb::ROLE_VIEWER
                              ? "spiffe://plant-4/viewer/eve at 127.0.0.1:"
                              : "spiffe://plant-4/viewer/alice at 127.0.0.1:"));
  }
  EXPECT_TRUE(backend_.orders().empty());
}

TEST_F(GateTest, EachMethodLetsItsLeastRoleIn) {
  const auto viewer = DialAs(tls::Role::kViewer);
  const auto steering = DialAs(tls::Role::kOperator);
  const auto admin = DialAs(tls::Role::kAdmin);
  for (int i = 0; i < Contract().method_count(); ++i) {
    const auto& method = *Contract().method(i);
    if (method.name() == "Watch") continue;  // it never ends; see below
    const pb::Role least = method.options().GetExtension(pb::least_role);
    if (least == pb::ROLE_VIEWER) {
      EXPECT_TRUE(Passes(Call(viewer, method.name()))) << method.name();
    }
    EXPECT_TRUE(Passes(Call(steering, method.name()))) << method.name();
    EXPECT_TRUE(Passes(Call(admin, method.name()))) << method.name();
  }
}

TEST_F(GateTest, TextsSayWhatTheCallerIsAndWhatIsNeeded) {
  const grpc::Status status = Call(DialAs(tls::Role::kViewer), "Train");
  EXPECT_THAT(status.error_message(),
              AllOf(HasSubstr("spiffe://plant-4/viewer/alice"),
                    HasSubstr("is a viewer here, and Train takes an operator"),
                    HasSubstr("--identity")));
}

TEST_F(GateTest, ANodesCertificateEndsInTheHandshake) {
  const grpc::Status status =
      Call(DialAs(tls::NodeIdentity("box-2")), "GetVersion");
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(
      Eventually([&] { return security_->refusals()["wrong-role"] > 0; }));
}

TEST_F(GateTest, AnUnknownMethodHasNoHandler) {
  EXPECT_EQ(Call(DialAs(tls::Role::kAdmin), "Nothing").error_code(),
            grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(GateTest, OrdersToTheNetworkAreSignedAlsoThoseOfAnAdminOnTheSocket) {
  client::ApplyPlanOptions apply;
  apply.yaml = "members: [box-1, box-2]\n";
  const absl::Status refused = client_->ApplyPlan(apply).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_TRUE(audit().back().caller.local);
  EXPECT_EQ(audit().back().caller.role, Role::kAdmin);
  // This node alone may be steered.
  EXPECT_TRUE(client_->Train(client::TrainAction::kPause).ok());
}

TEST_F(GateTest, ABanEndsALiveWatch) {
  const auto stub = pb::ControlService::NewStub(DialAs(tls::Role::kOperator));
  grpc::ClientContext context;
  pb::WatchRequest request;
  request.set_interval_seconds(3600);
  const auto reader = stub->Watch(&context, request);
  pb::WatchResponse response;
  ASSERT_TRUE(reader->Read(&response));
  const std::vector<tls::Identity> banned = {
      {"plant-4", tls::Role::kOperator, "alice"}};
  security_->SetBanned(banned);
  EXPECT_FALSE(reader->Read(&response));
  const grpc::Status end = reader->Finish();
  EXPECT_EQ(end.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(end.error_message(), HasSubstr("banned"));
}

// What a connection of another user of this machine gets: the first byte that
// the daemon sends, or nothing when it is cut off.
bool AnswersAs(uid_t user, const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    if (setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) {
      _exit(2);
    }
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
        0) {
      _exit(3);
    }
    char byte = 0;
    _exit(read(fd, &byte, 1) == 1 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_LE(WEXITSTATUS(status), 1);
  return WEXITSTATUS(status) == 0;
}

TEST_F(GateTest, OnTheSocketAUserWithoutARoleIsCutOff) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  options_.unix_socket = folder_.File("open.sock");
  options_.viewers = {"12345"};
  auto server = ControlServer::Start(options_, backend_);
  ASSERT_TRUE(server.ok()) << server.status();
  struct stat info{};
  ASSERT_EQ(stat(options_.unix_socket.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666u);
  ASSERT_EQ(chmod(folder_.File("").c_str(), 0755), 0);
  EXPECT_TRUE(AnswersAs(12345, options_.unix_socket));
  EXPECT_FALSE(AnswersAs(12346, options_.unix_socket));
  EXPECT_TRUE(Eventually([&] { return !audit().empty(); }));
  EXPECT_THAT(audit().back().caller.name, HasSubstr("uid 12346"));
  EXPECT_EQ(audit().back().what, "connect");
}

TEST_F(GateTest, AnUnknownUserInTheSettingsIsAStartUpError) {
  options_.unix_socket = folder_.File("other.sock");
  options_.admins = {"no-such-user"};
  const auto server = ControlServer::Start(options_, backend_);
  EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(server.status().message()),
              HasSubstr("control.admins"));
}

}  // namespace
}  // namespace dfl::control
