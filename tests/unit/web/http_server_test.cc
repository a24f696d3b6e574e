// Real requests over loopback: what is served to whom, and what a hostile
// client cannot do.
#include "daemon/web/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "daemon/base/host_port.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace dfl::web {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// A connection that says what it likes.
class Client {
 public:
  explicit Client(const std::string& address) {
    const HostPort place = *ParseHostPort(address);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(place.port));
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    connected_ =
        connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void Send(const std::string& text) {
    (void)!send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  }
  // What comes until the other end closes.
  std::string ReadAll() { return ReadUntil(""); }
  // What comes until `end` was in it; "": until the other end closes.
  std::string ReadUntil(const std::string& end) {
    std::string text;
    char buffer[4096];
    while (end.empty() || text.find(end) == std::string::npos) {
      const ssize_t got = recv(fd_, buffer, sizeof(buffer), 0);
      if (got <= 0) break;
      text.append(buffer, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  int fd_ = -1;
  bool connected_ = false;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpServerOptions options = {}) {
    options.addresses = {"127.0.0.1:0"};
    auto bound = HttpServer::Bind(std::move(options));
    ASSERT_TRUE(bound.ok()) << bound.status();
    server_ = *std::move(bound);
    server_->Add({"/metrics", Group::kMetrics, [](const HttpRequest& request) {
                    HttpResponse response;
                    response.body = absl::StrCat("q=",
                                                 request.query.count("q") > 0
                                                     ? request.query.at("q")
                                                     : "none",
                                                 " network=", request.network);
                    return response;
                  }});
    server_->Add({"/order", Group::kPage,
                  [](const HttpRequest& request) {
                    HttpResponse response;
                    response.body = absl::StrCat("got ", request.body);
                    return response;
                  },
                  Method::kPost});
    server_->AddStream(
        {"/events", Group::kPage,
         [this](const HttpRequest& /*request*/, EventStream& out) {
           int n = 0;
           while (out.Send("tick", absl::StrCat("one\ntwo ", ++n)) &&
                  out.Wait(absl::Hours(1))) {
           }
           ended_.Notify();
         }});
    server_->Start();
  }
  const std::string& address() const { return server_->addresses()[0]; }
  std::string Ask(const std::string& head, const std::string& body = "") {
    Client client(address());
    client.Send(absl::StrCat(head, "Connection: close\r\n\r\n", body));
    return client.ReadAll();
  }
  std::string Get(const std::string& target) {
    return Ask(
        absl::StrCat("GET ", target, " HTTP/1.1\r\nHost: localhost\r\n"));
  }

  absl::Notification ended_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, ServesWhatIsRegistered) {
  Start();
  const std::string answer = Get("/metrics?q=a%20b");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("q=a b network=0"));
  EXPECT_THAT(answer, HasSubstr("X-Content-Type-Options: nosniff"));
  EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'self'"));
  EXPECT_THAT(answer, HasSubstr("Cache-Control: no-store"));
  EXPECT_FALSE(server_->on_network());
}

TEST_F(HttpServerTest, SaysWhatThereIsWhereNothingIs) {
  Start();
  const std::string answer = Get("/nothing");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(answer, HasSubstr("there is /metrics"));
}

TEST_F(HttpServerTest, OneConnectionAsksSeveralTimes) {
  Start();
  Client client(address());
  for (int i = 0; i < 3; ++i) {
    client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_THAT(client.ReadUntil("network=0"), StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(HttpServerTest, APageOfElsewhereReadsNothing) {
  Start();
  // Its name points here.
  const std::string answer =
      Ask("GET /metrics HTTP/1.1\r\nHost: evil.example:7680\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 421"));
  EXPECT_THAT(answer, Not(HasSubstr("network=")));
  EXPECT_THAT(Ask("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Ask("GET /metrics HTTP/1.1\r\nHost: [::1]:1\r\n"),
              StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, APostMustComeFromItsOwnPage) {
  Start();
  const std::string head =
      "POST /order HTTP/1.1\r\nHost: localhost:1\r\nContent-Length: 5\r\n"
      "Content-Type: application/json\r\n";
  EXPECT_THAT(Ask(head, "hello"), HasSubstr("got hello"));
  EXPECT_THAT(Ask(head + "Origin: http://localhost:1\r\n", "hello"),
              HasSubstr("got hello"));
  EXPECT_THAT(Ask(head + "Origin: http://evil.example\r\n", "hello"),
              StartsWith("HTTP/1.1 403"));
}

TEST_F(HttpServerTest, ALargeRequestIsCutOff) {
  HttpServerOptions options;
  options.request_time = absl::Milliseconds(200);
  Start(options);
  // A body, and a head without an end.
  EXPECT_THAT(Ask("POST /order HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Length: 10000000\r\n"),
              Not(HasSubstr("got")));
  Client client(address());
  client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n");
  for (int i = 0; i < 300; ++i) {
    client.Send(absl::StrCat("X-", i, ": ", std::string(1000, 'x'), "\r\n"));
  }
  EXPECT_THAT(client.ReadAll(), Not(HasSubstr("network=")));
}

TEST_F(HttpServerTest, ASlowRequestIsCutOff) {
  HttpServerOptions options;
  options.request_time = absl::Milliseconds(50);
  Start(options);
  Client client(address());
  client.Send("GET /metrics HTT");
  EXPECT_THAT(client.ReadAll(), IsEmpty());
}

TEST_F(HttpServerTest, ManyConnectionsDoNotKeepANewOneOut) {
  HttpServerOptions options;
  options.max_connections = 4;
  Start(options);
  std::vector<std::unique_ptr<Client>> silent;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(std::make_unique<Client>(address()));
  }
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AStreamGoesOnWhenItIsWoken) {
  Start();
  Client client(address());
  client.Send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string first = client.ReadUntil("two 1");
  EXPECT_THAT(first, HasSubstr("text/event-stream"));
  EXPECT_THAT(first, HasSubstr("event: tick\ndata: one\ndata: two 1"));
  server_->Wake();
  EXPECT_THAT(client.ReadUntil("two 2"), HasSubstr("event: tick"));
}

TEST_F(HttpServerTest, StopEndsStreams) {
  Start();
  Client client(address());
  client.Send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  client.ReadUntil("two 1");
  server_->Stop();
  EXPECT_TRUE(ended_.HasBeenNotified());
  EXPECT_THAT(client.ReadAll(), Not(HasSubstr("two 2")));
  EXPECT_FALSE(Client(address()).connected());
}

TEST_F(HttpServerTest, TooManyStreamsAreTold) {
  HttpServerOptions options;
  options.max_streams = 1;
  Start(options);
  Client first(address());
  first.Send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n");
  first.ReadUntil("two 1");
  EXPECT_THAT(Get("/events"), StartsWith("HTTP/1.1 503"));
  // Probes still get through.
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, NonsenseIsNoAnswerAndNoCrash) {
  HttpServerOptions options;
  options.request_time = absl::Milliseconds(200);
  Start(options);
  for (const std::string& text :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01", 8),
        std::string("GET\r\n\r\n"), std::string(1000, '\0'),
        std::string("GET /metrics HTTP/9.9\r\n\r\n"),
        absl::StrCat("GET /", std::string(5000, 'a'), " HTTP/1.1\r\n",
                     "Host: localhost\r\nConnection: close\r\n\r\n")}) {
    Client client(address());
    client.Send(text);
    client.Send("\r\n\r\n");
    EXPECT_THAT(client.ReadAll(), Not(HasSubstr(" 200 ")));
  }
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServerBindTest, AnAddressInUseIsNamed) {
  HttpServerOptions options;
  options.addresses = {"127.0.0.1:0"};
  const auto first = HttpServer::Bind(options);
  ASSERT_TRUE(first.ok());
  options.addresses = (*first)->addresses();
  const auto second = HttpServer::Bind(options);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(second.status().message(), HasSubstr(options.addresses[0]));
}

}  // namespace
}  // namespace dfl::web
