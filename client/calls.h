// Calls to one daemon over gRPC: with a deadline each, retries where a call
// changes nothing, and errors that say what is wrong at `target`. Not
// installed.
#ifndef DFL_CLIENT_CALLS_H_
#define DFL_CLIENT_CALLS_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/sync_stream.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/control_client.h"
#include "client/target.h"
#include "client/tls_channel.h"
#include "client/watchdog.h"
#include "daemon/threads/steady_cond_var.h"
#include "dfl/control/v1/control.grpc.pb.h"
#include "proto/grpc_status.h"

namespace dfl {
namespace client {

using Stub = dfl::control::v1::ControlService::Stub;

// The connection to a daemon: by TLS on the network, unless plain text is
// asked for. It is made by the first call, because that is what fails when
// there is no identity. Thread-safe.
class Connection {
 public:
  // Both outlive it.
  Connection(const Target& target, const ClientOptions& options)
      : target_(target), options_(options) {}

  absl::StatusOr<Stub*> GetStub() ABSL_LOCKS_EXCLUDED(mutex_);

  // `status`, or why we refused the daemon, which to gRPC is one that is not
  // there.
  absl::Status Refused(const absl::Status& status) const;

  // Ours, with TLS; "" in plain text.
  std::string identity() const ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::MutexLock lock(&mutex_);
    return identity_;
  }

 private:
  grpc::ChannelArguments ChannelArguments() const;

  const Target& target_;
  const ClientOptions& options_;
  const std::shared_ptr<Refusal> refusal_ = std::make_shared<Refusal>();
  mutable absl::Mutex mutex_;
  std::unique_ptr<Stub> stub_ ABSL_GUARDED_BY(mutex_);
  std::string identity_ ABSL_GUARDED_BY(mutex_);
};

// What a stream needs beside its request.
struct StreamLimits {
  absl::Duration first;  // how long the first message may take
  absl::Duration next;   // how long each after it
  // True: it has no other good end than the reader's own.
  bool endless = false;
};

// Thread-safe.
class Calls {
 public:
  template <typename Request, typename Response>
  using Method = grpc::Status (Stub::*)(grpc::ClientContext*, const Request&,
                                        Response*);
  template <typename Request, typename Response>
  using StreamMethod = std::unique_ptr<grpc::ClientReader<Response>> (Stub::*)(
      grpc::ClientContext*, const Request&);

  Calls(Target target, ClientOptions options)
      : target_(std::move(target)),
        options_(std::move(options)),
        connection_(target_, options_) {}

  const std::string& target() const { return target_.text; }
  absl::Duration timeout() const { return options_.timeout; }

  // A call that changes something.
  template <typename Request, typename Response>
  absl::Status Once(Method<Request, Response> method, const Request& request,
                    Response& response) {
    return Explain(Attempt(method, request, response, options_.timeout));
  }

  // A call that may as well be made twice. `extra`: how much longer than
  // others it may take.
  template <typename Request, typename Response>
  absl::Status Repeat(Method<Request, Response> method, const Request& request,
                      Response& response,
                      absl::Duration extra = absl::ZeroDuration()) {
    return Retry(options_.timeout + extra, [&](absl::Duration left) {
      return Attempt(method, request, response, left);
    });
  }

  // Calls `on_message` for every message. OK once it returns false,
  // `stop_requested` (null: never) returns true, or the stream ends well. It is
  // opened again only as long as no message has come.
  template <typename Request, typename Response>
  absl::Status Stream(StreamMethod<Request, Response> method,
                      const Request& request, const StreamLimits& limits,
                      const std::function<bool(const Response&)>& on_message,
                      const std::function<bool()>& stop_requested) {
    bool came = false;
    absl::Status broken;  // after a message
    const absl::Status opened = Retry(limits.first, [&](absl::Duration left) {
      StreamLimits now = limits;
      now.first = left;
      const absl::Status status =
          ReadAll(method, request, now, on_message, stop_requested, came);
      if (!came) return status;
      broken = status;
      return absl::OkStatus();
    });
    return opened.ok() ? Explain(broken) : opened;
  }

 private:
  template <typename Request, typename Response>
  absl::Status Attempt(Method<Request, Response> method, const Request& request,
                       Response& response, absl::Duration timeout) {
    const absl::StatusOr<Stub*> stub = connection_.GetStub();
    if (!stub.ok()) return stub.status();
    grpc::ClientContext context;
    SetDeadline(context, timeout);
    response.Clear();
    const absl::Time began = SteadyNow();
    const absl::Status status =
        FromGrpc(((*stub)->*method)(&context, request, &response));
    return Came(status, SteadyNow() - began, timeout);
  }

  template <typename Request, typename Response>
  absl::Status ReadAll(StreamMethod<Request, Response> method,
                       const Request& request, const StreamLimits& limits,
                       const std::function<bool(const Response&)>& on_message,
                       const std::function<bool()>& stop_requested,
                       bool& came) {
    const absl::StatusOr<Stub*> stub = connection_.GetStub();
    if (!stub.ok()) return stub.status();
    grpc::ClientContext context;
    const auto reader = ((*stub)->*method)(&context, request);
    Watchdog watchdog(context, stop_requested);
    Response response;
    bool left = false;
    watchdog.Await(limits.first);
    while (!left && reader->Read(&response)) {
      came = let_in_ = true;
      watchdog.MessageCame();
      left = !on_message(response);
      watchdog.Await(limits.next);
    }
    if (left) context.TryCancel();
    const absl::Status status = FromGrpc(reader->Finish());
    if (left || watchdog.stopped()) return absl::OkStatus();
    if (watchdog.timed_out()) {
      return came ? FellSilent(limits.next) : TimedOut(limits.first);
    }
    if (!status.ok()) return connection_.Refused(status);
    if (!limits.endless) return absl::OkStatus();
    return absl::UnavailableError("the stream ended");
  }

  static void SetDeadline(grpc::ClientContext& context, absl::Duration timeout);

  // What became of a call that took `took` of its `timeout`.
  absl::Status Came(const absl::Status& status, absl::Duration took,
                    absl::Duration timeout) const;

  absl::Status Retry(
      absl::Duration timeout,
      const std::function<absl::Status(absl::Duration left)>& attempt) const;

  absl::Status TimedOut(absl::Duration after) const;
  absl::Status FellSilent(absl::Duration after) const;
  absl::Status Explain(const absl::Status& status) const;

  const Target target_;
  const ClientOptions options_;
  Connection connection_;
  // The daemon has answered before, so it lets us in.
  mutable std::atomic<bool> let_in_{false};
};

}  // namespace client
}  // namespace dfl

#endif  // DFL_CLIENT_CALLS_H_
