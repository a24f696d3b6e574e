#include "daemon/web/http_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "daemon/base/check.h"
#include "daemon/base/host_port.h"
#include "daemon/base/status_macros.h"
#include "daemon/net/bounded_acceptor.h"
#include "daemon/threads/steady_cond_var.h"
#include "daemon/web/http_connection.h"

namespace dfl::web {
namespace {

// A connection that asks nothing for so long is ended.
constexpr absl::Duration kIdle = absl::Seconds(5);
constexpr absl::Duration kHeartbeat = absl::Seconds(15);
constexpr size_t kMaxBody = 64 << 10;
constexpr size_t kMaxPath = 256;
constexpr const char* kPolicy =
    "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' "
    "data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

// Reads a request and writes its answer, which is all that we want of
// httplib::Server: it never listens.
class Engine : public httplib::Server {
 public:
  Engine() {
    // A server without a socket takes itself to be shutting down, and streams
    // nothing. The value is used for no more than that.
    svr_sock_ = 0;
    set_payload_max_length(kMaxBody);
  }

  // False: the connection cannot be used again.
  bool ServeOne(HttpConnection& connection) {
    bool closed = false;
    return Process(&Engine::process_request, connection, closed) && !closed;
  }

 private:
  using Setup = std::function<void(httplib::Request&)>;

  // cpp-httplib 0.11, Debian 12.
  bool Process(bool (Server::*process)(httplib::Stream&, bool, bool&,
                                       const Setup&),
               HttpConnection& connection, bool& closed) {
    return (this->*process)(connection, false, closed, nullptr);
  }
  // cpp-httplib 0.18, Debian 13.
  bool Process(bool (Server::*process)(httplib::Stream&, const std::string&,
                                       int, const std::string&, int, bool,
                                       bool&, const Setup&),
               HttpConnection& connection, bool& closed) {
    std::string local;
    int port = 0;
    connection.get_local_ip_and_port(local, port);
    return (this->*process)(connection, connection.remote_host(),
                            connection.remote_port(), local, port, false,
                            closed, nullptr);
  }
};

HttpResponse Refusal(int status, std::string text) {
  HttpResponse response;
  response.status = status;
  response.body = absl::StrCat(text, "\n");
  return response;
}

// The host of a Host header or of an Origin, in lower case, without its port.
std::string HostOf(absl::string_view text) {
  const size_t scheme = text.find("://");
  if (scheme != absl::string_view::npos) text.remove_prefix(scheme + 3);
  const size_t colon = text.rfind(':');
  if (colon != absl::string_view::npos &&
      text.find(']', colon) == absl::string_view::npos) {
    text = text.substr(0, colon);
  }
  return absl::AsciiStrToLower(text);
}

bool IsAddress(absl::string_view host) {
  if (absl::StartsWith(host, "[")) return true;
  return !host.empty() &&
         host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

// Whether a page of elsewhere cannot have sent a request with this host.
bool NamesThisMachine(const std::string& host) {
  if (host.empty() || host == "localhost" || IsAddress(host) ||
      absl::EndsWith(host, ".localhost")) {
    return true;
  }
  char name[256] = "";
  return gethostname(name, sizeof(name) - 1) == 0 &&
         host == absl::AsciiStrToLower(name);
}

std::string HeaderOf(const HttpRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? "" : found->second;
}

const char* NameOf(Group group) {
  switch (group) {
    case Group::kHealth:
      return "health";
    case Group::kMetrics:
      return "metrics";
    case Group::kPage:
      return "page";
  }
  return "";
}

class BoundedHttpServer final : public HttpServer {
 public:
  BoundedHttpServer(HttpServerOptions options,
                    std::unique_ptr<net::BoundedAcceptor> acceptor)
      : options_(std::move(options)), acceptor_(std::move(acceptor)) {
    engine_.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          // Its body is read before the handler of any POST.
          if (request.method == "POST" && request.path.size() <= kMaxPath) {
            return httplib::Server::HandlerResponse::Unhandled;
          }
          Answer(request, response);
          return httplib::Server::HandlerResponse::Handled;
        });
    engine_.Post(".*", [this](const httplib::Request& request,
                              httplib::Response& response) {
      Answer(request, response);
    });
    // Whoever asks for what there is not, or what is no request, is not waited
    // for.
    engine_.set_error_handler(
        [](const httplib::Request& /*request*/, httplib::Response& response) {
          response.set_header("Connection", "close");
          refused_ = true;
        });
    for (const std::string& address : acceptor_->addresses()) {
      const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
      on_network_ = on_network_ || !parsed.ok() ||
                    !(parsed->host == "::1" || parsed->host == "localhost" ||
                      absl::StartsWith(parsed->host, "127."));
    }
  }

  ~BoundedHttpServer() override { Stop(); }

  void Add(Route route) override {
    DFL_CHECK(!started_);
    const std::string path = route.path;
    const Method method = route.method;
    DFL_CHECK(
        routes_.emplace(std::pair(path, method), std::move(route)).second);
  }

  void AddStream(StreamRoute route) override {
    DFL_CHECK(!started_);
    const std::string path = route.path;
    DFL_CHECK(streams_.emplace(path, std::move(route)).second);
  }

  void Start() override {
    started_ = true;
    acceptor_->Start([this](int fd) { Begin(fd); });
  }

  void Stop() override {
    acceptor_->Stop();
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (HttpConnection* connection : live_) {
      shutdown(connection->socket(), SHUT_RDWR);
    }
    changed_.SignalAll();
    while (threads_ > 0) changed_.Wait(&mutex_);
  }

  void Wake() override {
    absl::MutexLock lock(&mutex_);
    ++news_;
    changed_.SignalAll();
  }

  const std::vector<std::string>& addresses() const override {
    return acceptor_->addresses();
  }
  bool on_network() const override { return on_network_; }

 private:
  class Events;

  void Begin(int fd) ABSL_LOCKS_EXCLUDED(mutex_) {
    auto connection =
        std::make_shared<HttpConnection>(fd, options_.request_time);
    {
      absl::MutexLock lock(&mutex_);
      if (stopping_) return;
      ++threads_;
      live_.insert(connection.get());
    }
    try {
      std::thread([this, connection] {
        Serve(*connection);
        End(*connection);
      }).detach();
    } catch (const std::system_error&) {  // the system has no more threads
      End(*connection);
    }
  }

  // Nothing is touched afterwards: the server may go.
  void End(HttpConnection& connection) ABSL_LOCKS_EXCLUDED(mutex_) {
    shutdown(connection.socket(), SHUT_RDWR);
    absl::MutexLock lock(&mutex_);
    live_.erase(&connection);
    --threads_;
    changed_.SignalAll();
  }

  void Serve(HttpConnection& connection) {
    serving_ = &connection;
    refused_ = false;
    while (!Stopping() && connection.AwaitRequest(kIdle)) {
      if (!engine_.ServeOne(connection) || refused_) break;
    }
    serving_ = nullptr;
  }

  bool Stopping() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return stopping_;
  }

  void Answer(const httplib::Request& from, httplib::Response& to) {
    HttpConnection& connection = *serving_;
    acceptor_->Admitted(connection.remote());
    HttpRequest request;
    request.path = from.path;
    request.body = from.body;
    request.remote = connection.remote();
    request.network = !connection.loopback();
    for (const auto& [name, value] : from.params) {
      request.query.emplace(name, value);
    }
    for (const auto& [name, value] : from.headers) {
      request.headers.emplace(absl::AsciiStrToLower(name), value);
    }
    if (from.method == "GET") {
      const auto stream = streams_.find(request.path);
      if (stream != streams_.end()) {
        return OpenStream(stream->second, std::move(request), to);
      }
    }
    Write(Dispatch(from.method, request), to);
  }

  HttpResponse Dispatch(const std::string& method, const HttpRequest& request) {
    if (method != "GET" && method != "HEAD" && method != "POST") {
      return Refusal(405, "GET and POST are all that is served here");
    }
    const Method wanted = method == "POST" ? Method::kPost : Method::kGet;
    const auto found = routes_.find(std::pair(request.path, wanted));
    if (found == routes_.end()) return NotFound(request);
    const Route& route = found->second;
    if (const auto refused = CheckAccess(route.group, request)) return *refused;
    if (wanted == Method::kPost && !FromSameHost(request)) {
      return Refusal(403, "this is a page of another host");
    }
    try {
      return route.handler(request);
    } catch (const std::exception& error) {
      return Refusal(500, error.what());
    }
  }

  std::optional<HttpResponse> CheckAccess(Group group,
                                          const HttpRequest& request) const {
    if (!request.network) {
      const std::string host = HostOf(HeaderOf(request, "host"));
      if (NamesThisMachine(host)) return std::nullopt;
      return Refusal(421,
                     absl::StrCat("\"", host.substr(0, 100),
                                  "\" is not this machine; ask for localhost"));
    }
    if (options_.network.count(group) > 0) return std::nullopt;
    return Refusal(
        403, absl::StrCat("this is served on the machine itself only; name ",
                          NameOf(group), " in web.open to serve it here"));
  }

  static bool FromSameHost(const HttpRequest& request) {
    const std::string origin = HeaderOf(request, "origin");
    return origin.empty() ||
           HostOf(origin) == HostOf(HeaderOf(request, "host"));
  }

  HttpResponse NotFound(const HttpRequest& request) const {
    std::vector<std::string> known;
    for (const auto& [key, route] : routes_) {
      if (!CheckAccess(route.group, request).has_value()) {
        known.push_back(key.first);
      }
    }
    return Refusal(404, known.empty()
                            ? "there is nothing here"
                            : absl::StrCat("there is nothing here; there is ",
                                           absl::StrJoin(known, ", ")));
  }

  static void Write(HttpResponse from, httplib::Response& to) {
    to.status = from.status;
    from.headers.emplace("Cache-Control", "no-store");
    from.headers.emplace("X-Content-Type-Options", "nosniff");
    from.headers.emplace("Content-Security-Policy", kPolicy);
    from.headers.emplace("Referrer-Policy", "no-referrer");
    for (const auto& [name, value] : from.headers) to.set_header(name, value);
    to.set_content(from.body, from.content_type);
  }

  void OpenStream(const StreamRoute& route, HttpRequest request,
                  httplib::Response& to);

  // Takes one of the places for streams; they are given back by EndStream.
  bool TakeStream() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (stopping_ || open_streams_ >= options_.max_streams) return false;
    ++open_streams_;
    return true;
  }
  void EndStream() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    --open_streams_;
  }

  // The connection that this thread serves.
  static thread_local HttpConnection* serving_;
  // Whether the present request was refused.
  static thread_local bool refused_;

  const HttpServerOptions options_;
  const std::unique_ptr<net::BoundedAcceptor> acceptor_;
  Engine engine_;
  bool on_network_ = false;
  bool started_ = false;
  std::map<std::pair<std::string, Method>, Route> routes_;
  std::map<std::string, StreamRoute> streams_;

  mutable absl::Mutex mutex_;
  SteadyCondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  size_t threads_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t open_streams_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t news_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<HttpConnection*> live_ ABSL_GUARDED_BY(mutex_);
};

thread_local HttpConnection* BoundedHttpServer::serving_ = nullptr;
thread_local bool BoundedHttpServer::refused_ = false;

class BoundedHttpServer::Events final : public EventStream {
 public:
  Events(BoundedHttpServer& server, httplib::DataSink& sink,
         const HttpConnection& connection)
      : server_(server), sink_(sink), connection_(connection) {
    absl::MutexLock lock(&server_.mutex_);
    seen_ = server_.news_;
  }

  bool Send(absl::string_view event, absl::string_view data) override {
    std::string text = absl::StrCat("event: ", event, "\n");
    for (const absl::string_view line : absl::StrSplit(data, '\n')) {
      absl::StrAppend(&text, "data: ", line, "\n");
    }
    text += '\n';
    return Put(text);
  }

  bool Wait(absl::Duration time) override {
    const absl::Time end = SteadyNow() + time;
    while (true) {
      {
        absl::MutexLock lock(&server_.mutex_);
        const absl::Time limit = std::min(end, SteadyNow() + kHeartbeat);
        while (!server_.stopping_ && server_.news_ == seen_ &&
               SteadyNow() < limit) {
          server_.changed_.WaitFor(&server_.mutex_, limit - SteadyNow());
        }
        if (server_.stopping_ || connection_.Gone()) return false;
        const bool news = server_.news_ != seen_;
        seen_ = server_.news_;
        if (news || SteadyNow() >= end) return true;
      }
      if (!Put(": still here\n\n")) return false;
    }
  }

 private:
  bool Put(absl::string_view text) {
    return !server_.Stopping() && !connection_.Gone() &&
           sink_.write(text.data(), text.size());
  }

  BoundedHttpServer& server_;
  httplib::DataSink& sink_;
  const HttpConnection& connection_;
  uint64_t seen_ = 0;
};

void BoundedHttpServer::OpenStream(const StreamRoute& route,
                                   HttpRequest request, httplib::Response& to) {
  if (const auto refused = CheckAccess(route.group, request)) {
    return Write(*refused, to);
  }
  if (!TakeStream()) {
    return Write(Refusal(503, "too many pages are open; close one"), to);
  }
  to.status = 200;
  to.set_header("Cache-Control", "no-store");
  to.set_header("X-Content-Type-Options", "nosniff");
  to.set_chunked_content_provider(
      "text/event-stream",
      [this, &route, request = std::move(request), &connection = *serving_](
          size_t /*offset*/, httplib::DataSink& sink) {
        Events events(*this, sink, connection);
        route.handler(request, events);
        sink.done();
        return true;
      },
      [this](bool /*sent*/) { EndStream(); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Bind(
    HttpServerOptions options) {
  net::AcceptorOptions acceptor;
  acceptor.tls = false;
  acceptor.max_pending = static_cast<int64_t>(options.max_connections);
  acceptor.max_connections = static_cast<int64_t>(options.max_connections);
  acceptor.patience = options.request_time;
  DFL_ASSIGN_OR_RETURN(
      std::unique_ptr<net::BoundedAcceptor> bound,
      net::BoundedAcceptor::Bind(options.addresses, std::move(acceptor)));
  return std::make_unique<BoundedHttpServer>(std::move(options),
                                             std::move(bound));
}

}  // namespace dfl::web
