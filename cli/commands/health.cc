// dflctl health: what a daemon's probes say. For whoever has to know by an exit
// code, such as a container's health check, where there is no curl.
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "daemon/base/host_port.h"
#include "daemon/base/status_macros.h"

namespace dfl::cli {
namespace {

constexpr size_t kLongestAnswer = 64 << 10;
constexpr int kHttpOk = 200;

struct HealthCommand {
  std::string at = "127.0.0.1:7603";
  bool ready = false;
};

struct Answer {
  int code = 0;      // of HTTP
  std::string text;  // without headers
};

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

absl::Status Unreachable(absl::string_view text) {
  return absl::UnavailableError(
      absl::StrCat(text, "; is web.listen set, and to this address?"));
}

// A socket that is connected to one of the host's addresses. Each wait on it
// ends after `patience`.
absl::StatusOr<Socket> Dial(const HostPort& address, absl::Duration patience) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(
      address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (failed != 0) return absl::UnavailableError(gai_strerror(failed));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 freeaddrinfo);
  const timeval wait = absl::ToTimeval(patience);
  int error = EADDRNOTAVAIL;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC,
                           one->ai_protocol));
    setsockopt(socket.fd(), SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    setsockopt(socket.fd(), SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    if (connect(socket.fd(), one->ai_addr, one->ai_addrlen) == 0) {
      return socket;
    }
    error = errno;
  }
  return Unreachable(std::strerror(error));
}

// GET of `path` by HTTP/1.0: the server closes when it has answered.
absl::StatusOr<Answer> Get(const HostPort& address, absl::string_view path,
                           absl::Duration patience) {
  DFL_ASSIGN_OR_RETURN(const Socket socket, Dial(address, patience));
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.0\r\nHost: ", address.ToString(),
                   "\r\nConnection: close\r\n\r\n");
  if (send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size())) {
    return Unreachable(std::strerror(errno));
  }
  std::string answer;
  char buffer[4096];
  while (answer.size() < kLongestAnswer) {
    const ssize_t got = recv(socket.fd(), buffer, sizeof(buffer), 0);
    if (got == 0) break;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) {
      return absl::DeadlineExceededError(
          absl::StrCat("no answer within ", absl::FormatDuration(patience)));
    }
    if (got < 0) return Unreachable(std::strerror(errno));
    answer.append(buffer, static_cast<size_t>(got));
  }
  // "HTTP/1.1 503 Service Unavailable"
  Answer result;
  const size_t body = answer.find("\r\n\r\n");
  const size_t blank = answer.find(' ');
  if (!absl::StartsWith(answer, "HTTP/1.") || body == std::string::npos ||
      blank > body ||
      !absl::SimpleAtoi(answer.substr(blank + 1, 3), &result.code)) {
    return absl::UnavailableError("what answers there is no HTTP server");
  }
  result.text = answer.substr(body + 4);
  return result;
}

ExitCode Health(Context& context, const HealthCommand& command) {
  const auto address = ParseHostPort(command.at);
  if (!address.ok()) {
    return context.Usage(absl::InvalidArgumentError(
        absl::StrCat("--at \"", command.at, "\": ", address.status().message(),
                     "; ", kHostPortForms)));
  }
  const absl::StatusOr<Answer> answer =
      Get(*address, command.ready ? "/readyz?verbose" : "/livez?verbose",
          context.timeout());
  if (!answer.ok()) {
    return context.Fail(absl::Status(
        answer.status().code(),
        absl::StrCat(command.at, ": ", answer.status().message())));
  }
  const bool well = answer->code == kHttpOk;
  std::string text;
  Json lines = Json::array();
  for (const absl::string_view line : absl::StrSplit(
           answer->text, absl::ByAnyChar("\r\n"), absl::SkipWhitespace())) {
    lines.push_back(Printable(std::string(line)));
    absl::StrAppend(&text, Printable(std::string(line)), "\n");
  }
  context.Print(Json{{"at", command.at},
                     {"probe", command.ready ? "ready" : "live"},
                     {"ok", well},
                     {"lines", std::move(lines)}},
                [&] { return text; });
  return well ? kOk : kFailed;
}

}  // namespace

void AddHealth(CLI::App& app, Chosen& chosen) {
  auto command = std::make_shared<HealthCommand>();
  CLI::App* health = AddCommand(
      app, "health", "Whether a daemon lives, by its plain port (web.listen)",
      "--ready --at 127.0.0.1:7603");
  health->add_option("--at", command->at, "Where it listens")
      ->capture_default_str();
  health->add_flag("--ready", command->ready,
                   "Whether it is ready to take part, too");
  health->callback([&chosen, command] {
    chosen = [command](Context& context) { return Health(context, *command); };
  });
}

}  // namespace dfl::cli
