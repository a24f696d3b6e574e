#include "daemon/net/bounded_acceptor.h"

#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/try_listen.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"
#include "tests/support/raw_socket.h"

namespace dfl::net {
namespace {

using ::testing::HasSubstr;
using testing_support::Eventually;
using testing_support::RawSocket;

constexpr absl::string_view kTlsRecord("\x16\x03\x01\x02\x00", 5);

class BoundedAcceptorTest : public ::testing::Test {
 protected:
  void TearDown() override {
    if (acceptor_ != nullptr) acceptor_->Stop();
    absl::MutexLock lock(&mutex_);
    for (const int fd : taken_) close(fd);
  }

  void Start(AcceptorOptions options,
             const std::string& address = "127.0.0.1:0") {
    absl::StatusOr<std::unique_ptr<BoundedAcceptor>> bound =
        BoundedAcceptor::Bind({address}, std::move(options));
    ASSERT_TRUE(bound.ok()) << bound.status();
    acceptor_ = *std::move(bound);
    address_ = acceptor_->addresses().front();
    acceptor_->Start([this](int fd) {
      absl::MutexLock lock(&mutex_);
      taken_.push_back(fd);
    });
  }
  size_t taken() {
    absl::MutexLock lock(&mutex_);
    return taken_.size();
  }
  bool WaitTaken(size_t count) {
    return Eventually(absl::Seconds(10), [&] { return taken() == count; });
  }
  bool WaitRefused(absl::string_view reason, int64_t count) {
    return Eventually(absl::Seconds(10), [&] {
      const auto refusals = acceptor_->refusals();
      const auto found = refusals.find(std::string(reason));
      return found != refusals.end() && found->second == count;
    });
  }
  // As a server that is done with it.
  void EndTaken(size_t index) {
    absl::MutexLock lock(&mutex_);
    shutdown(taken_[index], SHUT_RDWR);
  }
  std::unique_ptr<RawSocket> Member() {
    auto member = std::make_unique<RawSocket>(address_);
    const size_t before = taken();
    EXPECT_TRUE(member->Send(kTlsRecord));
    EXPECT_TRUE(WaitTaken(before + 1));
    acceptor_->Admitted(member->GrpcName());
    return member;
  }

  std::unique_ptr<BoundedAcceptor> acceptor_;
  std::string address_;
  absl::Mutex mutex_;
  std::vector<int> taken_ ABSL_GUARDED_BY(mutex_);
};

TEST(Bind, SaysWhatStandsAgainstAnAddress) {
  const auto first = BoundedAcceptor::Bind({"127.0.0.1:0"}, {});
  ASSERT_TRUE(first.ok()) << first.status();
  const std::string used = (*first)->addresses().front();
  const absl::Status in_use =
      BoundedAcceptor::Bind({"127.0.0.1:0", used}, {}).status();
  EXPECT_EQ(in_use.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(in_use.message()), HasSubstr(used));
  EXPECT_EQ(BoundedAcceptor::Bind({"7400"}, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BoundedAcceptor::Bind({"192.0.2.77:0"}, {}).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(
      BoundedAcceptor::Bind({"no-such-host.invalid:0"}, {}).status().code(),
      absl::StatusCode::kUnavailable);
}

TEST_F(BoundedAcceptorTest, HandsOnWhatBeginsATlsRecord) {
  Start({});
  const RawSocket member(address_);
  EXPECT_TRUE(member.Send(kTlsRecord));
  ASSERT_TRUE(WaitTaken(1));
  EXPECT_EQ(acceptor_->pending(), 1);
  acceptor_->Admitted(member.GrpcName());
  EXPECT_EQ(acceptor_->pending(), 0);
  EXPECT_EQ(acceptor_->connections(), 1);
  EndTaken(0);
  EXPECT_TRUE(Eventually(absl::Seconds(10),
                         [&] { return acceptor_->connections() == 0; }));
  EXPECT_TRUE(acceptor_->refusals().empty());
}

TEST_F(BoundedAcceptorTest, KnowsAMemberByItsIpv6Address) {
  if (!TryListen({"::1", 0}).ok()) GTEST_SKIP() << "there is no IPv6 here";
  Start({}, "[::1]:0");
  const auto member = Member();
  EXPECT_EQ(acceptor_->pending(), 0);
}

TEST_F(BoundedAcceptorTest, TheWildcardIsOfBothFamilies) {
  Start({}, "0.0.0.0:0");
  const int port = ParseHostPort(address_)->port;
  EXPECT_EQ(address_, absl::StrCat("0.0.0.0:", port));
  address_ = absl::StrCat("127.0.0.1:", port);
  const auto by_ipv4 = Member();
  EXPECT_EQ(acceptor_->pending(), 0);
  if (TryListen({"::1", 0}).ok()) {
    address_ = absl::StrCat("[::1]:", port);
    const auto by_ipv6 = Member();
    EXPECT_EQ(acceptor_->pending(), 0);
  }
}

TEST_F(BoundedAcceptorTest, ListensAtAllAddressesOfAName) {
  Start({}, "localhost:0");
  const int port = ParseHostPort(address_)->port;
  EXPECT_NE(port, 0);
  EXPECT_TRUE(RawSocket(absl::StrCat("127.0.0.1:", port)).connected());
}

TEST_F(BoundedAcceptorTest, WhoSpeaksNoTlsNeverReachesTheServer) {
  Start({});
  for (const absl::string_view bytes :
       {absl::string_view("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        absl::string_view("\x00", 1), absl::string_view("\x16\x02", 2)}) {
    const RawSocket stranger(address_);
    EXPECT_TRUE(stranger.Send(bytes));
    EXPECT_TRUE(stranger.WaitForEnd());
  }
  EXPECT_TRUE(WaitRefused(kPlaintext, 3));
  EXPECT_EQ(taken(), 0u);
  EXPECT_EQ(acceptor_->connections(), 0);
}

TEST_F(BoundedAcceptorTest, WhoTakesTooLongIsSentAway) {
  AcceptorOptions options;
  options.patience = absl::Milliseconds(100);
  Start(options);
  const RawSocket silent(address_);
  const RawSocket half(address_);
  EXPECT_TRUE(half.Send(kTlsRecord));
  EXPECT_TRUE(silent.WaitForEnd());
  EXPECT_TRUE(half.WaitForEnd());
  EXPECT_TRUE(WaitRefused(kTooSlow, 2));
  EXPECT_EQ(acceptor_->connections(), 0);
}

TEST_F(BoundedAcceptorTest, WhoLeavesBeforeAWordIsCounted) {
  Start({});
  {
    const RawSocket stranger(address_);
  }
  EXPECT_TRUE(WaitRefused(kAbandoned, 1));
}

TEST_F(BoundedAcceptorTest, TheOldestStrangerMakesRoomAndMembersStay) {
  AcceptorOptions options;
  options.max_pending = 4;
  options.patience = absl::Hours(1);
  std::vector<std::string> told;
  options.on_refusal = [&](absl::string_view reason) {
    told.emplace_back(reason);
  };
  Start(options);
  const auto member = Member();
  std::vector<std::unique_ptr<RawSocket>> strangers;
  for (int i = 0; i < 20; ++i) {
    strangers.push_back(std::make_unique<RawSocket>(address_));
    if (i % 2 == 0) {
      EXPECT_TRUE(strangers.back()->Send(kTlsRecord));
    }
  }
  EXPECT_TRUE(WaitRefused(kCrowdedOut, 16));
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(strangers[i]->WaitForEnd()) << i;
  for (int i = 16; i < 20; ++i) EXPECT_TRUE(strangers[i]->IsOpen()) << i;
  EXPECT_EQ(acceptor_->pending(), 4);
  EXPECT_EQ(acceptor_->connections(), 5);
  EXPECT_TRUE(member->IsOpen());
  // Another member still gets in.
  const auto second = Member();
  EXPECT_TRUE(second->IsOpen());
  acceptor_->Stop();
  EXPECT_EQ(told, std::vector<std::string>(17, std::string(kCrowdedOut)));
}

TEST_F(BoundedAcceptorTest, MembersAreBoundedToo) {
  AcceptorOptions options;
  options.max_connections = 2;
  Start(options);
  const auto first = Member();
  const auto second = Member();
  const RawSocket third(address_);
  EXPECT_TRUE(third.WaitForEnd());
  EXPECT_TRUE(WaitRefused(kTooMany, 1));
  EXPECT_TRUE(first->IsOpen());
  EndTaken(0);
  EXPECT_TRUE(Eventually(absl::Seconds(10),
                         [&] { return acceptor_->connections() == 1; }));
  const auto fourth = Member();
  EXPECT_TRUE(fourth->IsOpen());
}

TEST_F(BoundedAcceptorTest, OneMemberIsBoundedByItself) {
  AcceptorOptions options;
  options.max_of_peer = 2;
  Start(options);
  const auto connect = [&](const std::string& peer) {
    auto member = std::make_unique<RawSocket>(address_);
    const size_t before = taken();
    EXPECT_TRUE(member->Send(kTlsRecord));
    EXPECT_TRUE(WaitTaken(before + 1));
    acceptor_->Admitted(member->GrpcName(), peer);
    acceptor_->Admitted(member->GrpcName(), peer);  // its second stream
    return member;
  };
  const auto first = connect("b");
  const auto second = connect("b");
  EXPECT_TRUE(connect("b")->WaitForEnd());
  EXPECT_EQ(acceptor_->refusals()[std::string(kTooManyOfPeer)], 1);
  const auto other = connect("c");
  EXPECT_TRUE(first->IsOpen() && second->IsOpen() && other->IsOpen());
  EndTaken(0);
  EXPECT_TRUE(Eventually(absl::Seconds(10),
                         [&] { return acceptor_->connections() == 2; }));
  EXPECT_TRUE(connect("b")->IsOpen());
}

TEST_F(BoundedAcceptorTest, WithoutTlsEveryConnectionIsHandedOn) {
  AcceptorOptions options;
  options.tls = false;
  Start(options);
  const RawSocket silent(address_);
  EXPECT_TRUE(WaitTaken(1));
  EXPECT_EQ(acceptor_->pending(), 1);
}

TEST_F(BoundedAcceptorTest, StopEndsTheListening) {
  Start({});
  acceptor_->Stop();
  EXPECT_FALSE(RawSocket(address_).connected());
}

}  // namespace
}  // namespace dfl::net
