// A small HTTP/1.1 server for what people and programs look at: probes,
// metrics, the status page. Rooms and app register routes by path; the server
// knows none of them.
//
//   auto server = HttpServer::Bind(options);      // listening, nobody served
//   (*server)->Add({"/metrics", Group::kMetrics, handler});
//   (*server)->Start();
//   ...
//   (*server)->Stop();
//
// Bounds
//   connections  a thread each, at most `max_connections`; for one more, the
//                oldest that has not sent a whole request yet is ended
//   a request    its head has at most 16 KiB, its body 64 KiB, and all of it
//                arrives within `request_time`; so is an answer read
//   streams      at most `max_streams`, the others get 503
//
// Who gets what
//   A connection to a loopback address gets every route, but only for a Host
//   that names this machine: a web page of elsewhere that has its name point
//   here reads nothing. Any other connection gets the groups in `network`.
//   A POST must come from a page of the same host.
//
// The library underneath is cpp-httplib: it reads requests and writes answers.
// Sockets, threads and bounds are ours.
#ifndef DFL_WEB_HTTP_SERVER_H_
#define DFL_WEB_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace dfl::web {

// What kind of thing a route shows; the settings open groups to the network.
enum class Group { kHealth, kMetrics, kPage };

enum class Method { kGet, kPost };

struct HttpRequest {
  std::string path;                            // decoded, without the query
  std::map<std::string, std::string> query;    // of several values the first
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // of a POST
  std::string remote;                          // "address:port"
  bool network = false;                        // it did not come by loopback
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // More headers, e.g. ETag. Content-Length, Date, Cache-Control: no-store,
  // X-Content-Type-Options and a Content-Security-Policy that lets a page load
  // from this server alone are there already, unless named here.
  std::map<std::string, std::string> headers;
};

// The writing end of a stream of server-sent events (text/event-stream). Used
// by one handler, on its thread.
class EventStream {
 public:
  virtual ~EventStream() = default;
  // Writes one event: `data` may have several lines. False: the reader is gone
  // or the server stops, and the handler must return.
  virtual bool Send(absl::string_view event, absl::string_view data) = 0;
  // Waits until Wake, at most `time`; meanwhile a comment every 15 s keeps
  // proxies from giving the stream up. False: as Send's.
  virtual bool Wait(absl::Duration time) = 0;
};

struct Route {
  std::string path;  // whole, as "/metrics"; HEAD is answered as well
  Group group = Group::kPage;
  // Runs on a connection's thread, several at once; must not wait for the
  // node's loop.
  std::function<HttpResponse(const HttpRequest&)> handler;
  Method method = Method::kGet;
};

struct StreamRoute {
  std::string path;
  Group group = Group::kPage;
  // Returns when it is done or when `out` says that nobody reads any more.
  std::function<void(const HttpRequest&, EventStream& out)> handler;
};

struct HttpServerOptions {
  // "host:port"; port 0: the system chooses.
  std::vector<std::string> addresses;
  // What connections that do not come by loopback get.
  std::set<Group> network = {Group::kHealth, Group::kMetrics};
  size_t max_connections = 32;
  size_t max_streams = 16;
  absl::Duration request_time = absl::Seconds(5);
};

// Thread-safe after Start.
class HttpServer {
 public:
  // Errors: INVALID_ARGUMENT: no address; ALREADY_EXISTS: in use;
  // PERMISSION_DENIED, UNAVAILABLE: cannot be listened on. Each names the
  // address and what to do.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Bind(
      HttpServerOptions options);
  virtual ~HttpServer() = default;  // as Stop

  // Before Start. A path is registered once.
  virtual void Add(Route route) = 0;
  virtual void AddStream(StreamRoute route) = 0;
  virtual void Start() = 0;
  // Ends every connection; no handler runs once it has returned. Idempotent.
  virtual void Stop() = 0;

  // Ends the waits of all streams, which then look for news. Cheap; it may be
  // called on the node's loop, whom no stream can hold up.
  virtual void Wake() = 0;

  // Where it listens, with the ports that were chosen.
  virtual const std::vector<std::string>& addresses() const = 0;
  // Whether one of them is not loopback.
  virtual bool on_network() const = 0;
};

}  // namespace dfl::web

#endif  // DFL_WEB_HTTP_SERVER_H_
