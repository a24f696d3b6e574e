// dflctl health, asked of small servers on loopback.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/unit/cli/fake_daemon.h"

namespace dfl::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// Listens on loopback, and answers one request with `answer`.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : answer_(std::move(answer)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(listener_, any, length), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, any, &length), 0);
    at_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
    server_ = std::thread([this] { Serve(); });
  }
  ~OneAnswer() {
    server_.join();
    close(listener_);
  }

  const std::string& at() const { return at_; }
  // What was asked; once the command has returned.
  const std::string& asked() {
    if (server_.joinable()) server_.join();
    server_ = std::thread([] {});
    return asked_;
  }

 private:
  void Serve() {
    const int fd = accept(listener_, nullptr, nullptr);
    char buffer[1024];
    while (asked_.find("\r\n\r\n") == std::string::npos) {
      const ssize_t got = recv(fd, buffer, sizeof(buffer), 0);
      if (got <= 0) break;
      asked_.append(buffer, static_cast<size_t>(got));
    }
    if (answer_.empty()) {
      // Silent until the other end has given up.
      EXPECT_EQ(recv(fd, buffer, sizeof(buffer), 0), 0);
    }
    send(fd, answer_.data(), answer_.size(), MSG_NOSIGNAL);
    close(fd);
  }

  const std::string answer_;
  int listener_ = -1;
  std::string at_;
  std::string asked_;
  std::thread server_;
};

using HealthCommandTest = CliTest;

TEST_F(HealthCommandTest, LivesWhereTheProbePasses) {
  OneAnswer daemon("HTTP/1.1 200 OK\r\nA: b\r\n\r\nloop: ok\ntraining: ok\n");
  const Result result = Run({"health", "--at", daemon.at()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "loop: ok\ntraining: ok\n");
  EXPECT_THAT(daemon.asked(), StartsWith("GET /livez?verbose HTTP/1.0\r\n"));
}

TEST_F(HealthCommandTest, SaysWhatIsAmiss) {
  OneAnswer daemon(
      "HTTP/1.1 503 Service Unavailable\r\n\r\nstate: \x1b[2Jno disk\r\n");
  const Result result =
      Run({"health", "--ready", "-o", "json", "--at", daemon.at()});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, HasSubstr("\"ok\": false"));
  EXPECT_THAT(result.out, HasSubstr("\"state: ?[2Jno disk\""));
  EXPECT_THAT(daemon.asked(), StartsWith("GET /readyz?verbose HTTP/1.0\r\n"));
}

TEST_F(HealthCommandTest, ThreeWhereNobodyAnswers) {
  // A port that was just free: nobody listens there.
  std::string at;
  {
    OneAnswer gone("HTTP/1.0 200 OK\r\n\r\n");
    at = gone.at();
    EXPECT_EQ(Run({"health", "--at", at}).code, 0);
  }
  const Result result = Run({"health", "--at", at});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr(absl::StrCat(at, ": Connection refused")));
  EXPECT_THAT(result.err, HasSubstr("web.listen"));
}

TEST_F(HealthCommandTest, AnotherServerIsNoDaemon) {
  OneAnswer other("SSH-2.0-OpenSSH_9.2\r\n");
  const Result result = Run({"health", "--at", other.at()});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("no HTTP server"));
}

TEST_F(HealthCommandTest, DoesNotWaitForEver) {
  OneAnswer silent("");
  const Result result =
      Run({"health", "--timeout", "100ms", "--at", silent.at()});
  EXPECT_EQ(result.code, 5);
  EXPECT_THAT(result.err, HasSubstr("no answer within 100ms"));
}

TEST_F(HealthCommandTest, AWrongAddressIsAWrongCommandLine) {
  const Result result = Run({"health", "--at", "localhost"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("--at \"localhost\": it has no port"));
}

}  // namespace
}  // namespace dfl::cli
