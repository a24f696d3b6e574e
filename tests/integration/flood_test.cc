// 10,000 connections a minute from 1,000 addresses without a certificate: what
// they cost a node in memory, and its member in throughput.
//
// Windows with and without the flood take turns, so that a machine that is busy
// otherwise is so in both.
#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "daemon/app/event_loop.h"
#include "daemon/exchange/grpc_transport.h"
#include "gtest/gtest.h"
#include "tests/integration/grpc_node.h"

namespace dfl::exchange {
namespace {

using ports::LinkId;

constexpr int kWindows = 12;
constexpr absl::Duration kWindow = absl::Seconds(5);
// Until the allocator holds what the exchange by itself needs.
constexpr absl::Duration kWarmUp = absl::Seconds(15);
constexpr int kConnectionsAWindow = 10'000 / kWindows + 1;
constexpr int kAddresses = 1000;
// The flood's own descriptors.
constexpr size_t kMostOpen = 400;

// The flood is a process of its own: its memory does not count.
class Flood {
 public:
  // Before gRPC has any thread.
  Flood() {
    int go[2];
    int done[2];
    if (pipe(go) != 0 || pipe(done) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) Run(go[0], done[1]);
    close(go[0]);
    close(done[1]);
    go_ = go[1];
    done_ = done[0];
  }
  ~Flood() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(go_);
    close(done_);
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

  // One window of it.
  void Start(int port) {
    ASSERT_EQ(write(go_, &port, sizeof(port)), sizeof(port));
  }
  // Connections that were made.
  int Wait() {
    int made = 0;
    EXPECT_EQ(read(done_, &made, sizeof(made)), sizeof(made));
    return made;
  }

 private:
  [[noreturn]] static void Run(int go, int done) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
    const unsigned char alpn[] = {2, 'h', '2'};
    SSL_CTX_set_alpn_protos(context, alpn, sizeof(alpn));
    int serial = 0;
    int port = 0;
    while (read(go, &port, sizeof(port)) == sizeof(port)) {
      const int made = Window(port, context, &serial);
      if (write(done, &made, sizeof(made)) != sizeof(made)) break;
    }
    _exit(0);
  }

  static int Window(int port, SSL_CTX* context, int* serial) {
    const absl::Time start = absl::Now();
    std::deque<int> open;
    int made = 0;
    for (int i = 0; i < kConnectionsAWindow; ++i) {
      absl::SleepFor(start + i * (kWindow / kConnectionsAWindow) - absl::Now());
      const int fd = Connect(port, ++*serial % kAddresses);
      if (fd < 0) continue;
      ++made;
      open.push_back(fd);
      Speak(fd, i % 4, context);
      if (open.size() > kMostOpen) {
        close(open.front());
        open.pop_front();
      }
    }
    for (const int fd : open) close(fd);
    return made;
  }

  static int Connect(int port, int name) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval patience = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr =
        htonl((127u << 24) + (1u << 16) + ((name / 250) << 8) + name % 250 + 1);
    sockaddr_in to = from;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(port);
    if (bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof(from)) == 0 &&
        connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0) {
      return fd;
    }
    close(fd);
    return -1;
  }

  static void Speak(int fd, int kind, SSL_CTX* context) {
    const std::string garbage(1000, '\xa5');
    switch (kind) {
      case 0:  // says nothing
        break;
      case 1:  // begins a handshake and stops
        (void)!send(fd, "\x16\x03\x01\x02\x00\x01\x00", 7, MSG_NOSIGNAL);
        break;
      case 2:  // speaks no TLS
        (void)!send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
        break;
      default: {  // TLS without a certificate, to the end
        SSL* const ssl = SSL_new(context);
        SSL_set_fd(ssl, fd);
        char byte;
        if (SSL_connect(ssl) == 1) SSL_read(ssl, &byte, 1);
        SSL_free(ssl);
      }
    }
  }

  pid_t child_ = -1;
  int go_ = -1;
  int done_ = -1;
};

// Sends chunks as fast as they are taken, or counts those that come.
class Pump final : public ports::Transport::Handler {
 public:
  Pump(const std::string& name, net::NetworkSecurity* security)
      : loop_("pump") {
    GrpcTransportOptions options = NodeOptions(name, 1);
    options.security = security;
    transport_ = std::make_unique<GrpcTransport>(loop_, options);
    transport_->SetHandler(this);
  }
  ~Pump() override {
    loop_.RunAndWait([this] { transport_.reset(); });
    loop_.Stop();
  }

  std::string Listen() { return transport_->Listen({"127.0.0.1:0"})->front(); }
  void Connect(const std::string& address) {
    loop_.RunAndWait([&] { transport_->Dial(address); });
    up_.WaitForNotification();
    loop_.RunAndWait([this] { Send(); });
  }
  int64_t received() const { return received_; }

  void OnLinkUp(LinkId link, const ports::PeerIdentity&,
                const std::string& dialled) override {
    if (dialled.empty()) return;
    link_ = link;
    up_.Notify();
  }
  void OnDialFailed(const std::string&, const absl::Status& status) override {
    ADD_FAILURE() << status;
    up_.Notify();
  }
  void OnFrame(LinkId, ports::Frame frame) override {
    if (const auto* chunk = std::get_if<ports::Chunk>(&frame)) {
      received_ += static_cast<int64_t>(chunk->data.size());
    }
  }
  void OnWritable(LinkId) override { Send(); }
  void OnLinkDown(LinkId, const absl::Status& reason) override {
    if (link_ != 0) ADD_FAILURE() << reason;
  }

 private:
  void Send() {
    while (
        link_ != 0 &&
        transport_->Send(link_, ports::contract::ChunkAt(0, int64_t{256} << 10))
            .ok()) {
    }
  }

  app::EventLoop loop_;
  std::unique_ptr<GrpcTransport> transport_;
  absl::Notification up_;
  LinkId link_ = 0;
  std::atomic<int64_t> received_ = 0;
};

int64_t ResidentBytes() {
  int64_t size = 0;
  int64_t resident = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  EXPECT_EQ(std::fscanf(file, "%ld %ld", &size, &resident), 2);
  std::fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(Flood, CostsLittleMemoryAndLeavesMembersTheirRate) {
  Flood flood;
  MadeNetwork network;
  const auto security = network.Make("victim");
  const auto member_security = network.Make("member");
  // As the daemon does (learner/process_settings), and with one arena: else the
  // free memory of each thread's own grows with whatever else the machine does.
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_ARENA_MAX, 1);
  Pump victim("victim", security.get());
  const std::string address = victim.Listen();
  const int port = ParseHostPort(address)->port;
  Pump member("member", member_security.get());
  member.Connect(address);

  int made = 0;
  std::vector<double> shares;
  // The member's rate in MB/s; `most` becomes the largest resident memory.
  const auto rate = [&](absl::Duration time, int64_t* most) {
    const int64_t from = victim.received();
    const absl::Time start = absl::Now();
    while (absl::Now() < start + time) {
      absl::SleepFor(absl::Milliseconds(100));
      *most = std::max(*most, ResidentBytes());
    }
    return (victim.received() - from) /
           absl::ToDoubleSeconds(absl::Now() - start) / 1e6;
  };
  int64_t before = 0;
  int64_t most = 0;
  rate(kWarmUp, &before);
  for (int i = 0; i < kWindows; ++i) {
    const double quiet = rate(kWindow, &most);
    flood.Start(port);
    const double flooded = rate(kWindow, &most);
    // Another member gets in meanwhile.
    const std::string name = absl::StrCat("late-", i);
    const auto late_security = network.Make(name);
    GrpcTransportOptions options = NodeOptions(name, 1);
    options.security = late_security.get();
    GrpcNode late(options, "");
    late.Run([&] { late.transport->Dial(address); });
    EXPECT_TRUE(late.Wait([&] { return late.recorder.up() == 1; }));
    made += flood.Wait();
    shares.push_back(flooded / quiet);
    std::printf("%2d: %5.0f MB/s, flooded %5.0f MB/s, resident %+.1f MB\n", i,
                quiet, flooded, (most - before) / 1e6);
  }
  std::sort(shares.begin(), shares.end());
  const double share = shares[shares.size() / 2];
  std::printf("%d connections; the member keeps %.2f; resident %+.1f MB\n",
              made, share, (most - before) / 1e6);
  for (const auto& [reason, count] : security->refusals()) {
    std::printf("  %s: %ld\n", reason.c_str(), static_cast<long>(count));
  }
  EXPECT_GE(made, 9'000);
  EXPECT_GE(share, 0.8);
  EXPECT_LE(most - before, int64_t{64} << 20);
}

}  // namespace
}  // namespace dfl::exchange
