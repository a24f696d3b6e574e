// Metrics, log, level and checks over the control service; gRPC's own health
// and reflection services beside it.
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/unit/control/control_server_fixture.h"
#include "tests/unit/control/fake_observer.h"

namespace dfl::control {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class ObserveCallTest : public ControlServerTest {
 protected:
  ObserveCallTest() { options_.observer = &observer_; }

  FakeObserver observer_;
};

TEST_F(ObserveCallTest, GivesTheMetrics) {
  Start();
  const auto text = client_->Metrics();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, observer_.metrics);
}

TEST_F(ObserveCallTest, GivesLinesOfTheLog) {
  Start();
  const auto all = client_->Log({});
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_THAT(all->lines, SizeIs(2));
  EXPECT_EQ(all->lines[0].event, "link-up");
  EXPECT_EQ(all->lines[0].fields.at("peer"), "bert");
  EXPECT_EQ(all->lines[1].level, client::LogLevel::kWarning);
  EXPECT_EQ(all->lines[1].unix_nanos, int64_t{1800000001} * 1000000000);
  EXPECT_EQ(all->forgotten, 4);
  EXPECT_EQ(all->level, client::LogLevel::kInfo);

  EXPECT_THAT(client_->Log({1, 0, client::LogLevel::kUnknown})->lines,
              SizeIs(1));
  EXPECT_THAT(client_->Log({0, 1, client::LogLevel::kUnknown})->lines,
              SizeIs(1));
  EXPECT_THAT(client_->Log({0, 0, client::LogLevel::kError})->lines, SizeIs(0));
}

TEST_F(ObserveCallTest, SetsALevelForAWhileAndAuditsIt) {
  Start();
  const auto set =
      client_->SetLogLevel(client::LogLevel::kDebug, absl::Minutes(10));
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(set->now, client::LogLevel::kDebug);
  EXPECT_EQ(set->settings, client::LogLevel::kInfo);
  EXPECT_EQ(observer_.Levels().left, absl::Minutes(10));
  const auto back =
      client_->SetLogLevel(client::LogLevel::kUnknown, absl::Minutes(1));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->now, client::LogLevel::kInfo);
  const auto long_time =
      client_->SetLogLevel(client::LogLevel::kDebug, absl::Hours(25));
  EXPECT_EQ(long_time.status().code(), absl::StatusCode::kInvalidArgument);
  std::vector<std::string> what;
  for (const AuditRecord& record : audit()) what.push_back(record.what);
  EXPECT_THAT(what, ElementsAre("set the log's level to debug",
                                "set the log's level to as the settings say",
                                "set the log's level to debug"));
}

TEST_F(ObserveCallTest, GivesFindings) {
  observer_.findings = {
      {"disk", Finding::Kind::kFault, "it is full", "make room"}};
  Start();
  const auto told = client_->Diagnose();
  ASSERT_TRUE(told.ok()) << told.status();
  ASSERT_THAT(told->findings, SizeIs(1));
  EXPECT_EQ(told->findings[0].kind, client::Finding::Kind::kFault);
  EXPECT_EQ(told->findings[0].remedy, "make room");
  EXPECT_GT(told->unix_nanos, 0);
}

TEST_F(ObserveCallTest, WithoutAnObserverNothingIsTold) {
  options_.observer = nullptr;
  Start();
  EXPECT_EQ(client_->Metrics().status().code(),
            absl::StatusCode::kUnimplemented);
}

// A call of a service whose messages are not ours: bytes out, bytes back.
class RawStream {
 public:
  RawStream(const std::string& target, const std::string& method,
            const std::string& request)
      : stub_(grpc::CreateChannel(target, grpc::InsecureChannelCredentials())) {
    stream_ = stub_.PrepareCall(&context_, method, &queue_);
    stream_->StartCall(this);
    if (!Await()) return;
    const grpc::Slice slice(request);
    stream_->Write(grpc::ByteBuffer(&slice, 1), this);
    (void)Await();
  }
  ~RawStream() {
    context_.TryCancel();
    (void)Finish();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  RawStream(const RawStream&) = delete;
  RawStream& operator=(const RawStream&) = delete;

  // The next message; "": there is none.
  std::string Next() {
    grpc::ByteBuffer buffer;
    stream_->Read(&buffer, this);
    if (!Await()) return "";
    std::vector<grpc::Slice> slices;
    (void)buffer.Dump(&slices);
    std::string text;
    for (const grpc::Slice& slice : slices) {
      text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return text;
  }
  grpc::StatusCode Finish() {
    if (!finished_) {
      finished_ = true;
      stream_->Finish(&status_, this);
      (void)Await();
    }
    return status_.error_code();
  }

 private:
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  grpc::Status status_;
  bool finished_ = false;
};

constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kReflection[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
// HealthCheckResponse.
const std::string kServing = "\x08\x01";
const std::string kNotServing = "\x08\x02";
const std::string kUnknownService = "\x08\x03";

// HealthCheckRequest.
std::string Service(const std::string& name) {
  return std::string("\x0a") + static_cast<char>(name.size()) + name;
}

class HealthServiceTest : public ControlServerTest {
 protected:
  HealthServiceTest() {
    options_.health = [this] {
      return std::map<std::string, bool>{{"", ready_.load()},
                                         {"liveness", true}};
    };
  }
  const std::string& target() const { return server_->addresses()[0]; }

  std::atomic<bool> ready_{false};
};

TEST_F(HealthServiceTest, WatchersAreToldOfEveryChange) {
  Start();
  RawStream watch(target(), kWatch, Service(""));
  EXPECT_EQ(watch.Next(), kNotServing);
  ready_.store(true);
  EXPECT_EQ(watch.Next(), kServing);
  ready_.store(false);
  EXPECT_EQ(watch.Next(), kNotServing);
  EXPECT_EQ(RawStream(target(), kWatch, Service("liveness")).Next(), kServing);
  EXPECT_EQ(RawStream(target(), kWatch, Service("nobody")).Next(),
            kUnknownService);
}

TEST_F(HealthServiceTest, WithoutItNobodyAnswers) {
  options_.health = nullptr;
  Start();
  RawStream watch(target(), kWatch, Service(""));
  EXPECT_EQ(watch.Next(), "");
  EXPECT_EQ(watch.Finish(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(HealthServiceTest, ServicesAreListedOnTheMachineOnly) {
  options_.addresses = {"127.0.0.1:0"};
  Start();
  ASSERT_THAT(server_->addresses(), SizeIs(2));
  // ServerReflectionRequest{list_services: "*"}
  const std::string list = "\x3a\x01*";
  RawStream local(server_->addresses()[0], kReflection, list);
  const std::string services = local.Next();
  EXPECT_THAT(services, HasSubstr("dfl.control.v1.ControlService"));
  EXPECT_THAT(services, HasSubstr("grpc.health.v1.Health"));
  RawStream network(server_->addresses()[1], kReflection, list);
  EXPECT_EQ(network.Next(), "");
  EXPECT_EQ(network.Finish(), grpc::StatusCode::UNIMPLEMENTED);
  // Both serve the rest.
  RawStream health(server_->addresses()[1], kWatch, Service("liveness"));
  EXPECT_EQ(health.Next(), kServing);
}

}  // namespace
}  // namespace dfl::control
