#include "client/calls.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/retry.h"
#include "daemon/threads/steady_cond_var.h"

namespace dfl {
namespace client {
namespace {

// gRPC's text for a call whose own deadline has passed.
constexpr char kOwnDeadline[] = "Deadline Exceeded";

constexpr int kMaxMessageBytes = 16 << 20;

}  // namespace

absl::StatusOr<Stub*> Connection::GetStub() {
  const absl::MutexLock lock(&mutex_);
  if (stub_ != nullptr) return stub_.get();
  std::shared_ptr<grpc::ChannelCredentials> credentials =
      grpc::InsecureChannelCredentials();
  if (target_.socket_path.empty() && !target_.plaintext && !options_.insecure) {
    if (options_.identity == nullptr) {
      return absl::UnauthenticatedError(absl::StrCat(
          target_.text,
          ": a daemon on the network is told who calls, and no identity is "
          "given; set ClientOptions::identity, or speak plain text to "
          "insecure:",
          target_.address));
    }
    const absl::StatusOr<ClientIdentity> identity = options_.identity();
    if (absl::IsUnavailable(identity.status())) {
      // Not the daemon's: this machine's clock is not set.
      return absl::FailedPreconditionError(identity.status().message());
    }
    if (!identity.ok()) return identity.status();
    const absl::StatusOr<TlsIdentity> made =
        MakeTlsIdentity(*identity, refusal_);
    if (!made.ok()) return made.status();
    credentials = made->credentials;
    identity_ = made->uri;
  }
  stub_ = dfl::control::v1::ControlService::NewStub(grpc::CreateCustomChannel(
      target_.address, credentials, ChannelArguments()));
  return stub_.get();
}

absl::Status Connection::Refused(const absl::Status& status) const {
  if (!absl::IsUnavailable(status)) return status;
  const std::string why = refusal_->text();
  if (why.empty()) return status;
  return absl::UnauthenticatedError(absl::StrCat(
      target_.text, ": the daemon there is refused: ", why,
      "; is it the daemon that you mean, and is your ca.pem that of its "
      "network (`dflctl cert show`)?"));
}

grpc::ChannelArguments Connection::ChannelArguments() const {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  // Control goes straight to the named daemon, never through a proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  // To gRPC this is how long one attempt to connect may take. Half of the
  // call's time: a name may have a second address.
  arguments.SetInt(
      GRPC_ARG_MIN_RECONNECT_BACKOFF_MS,
      static_cast<int>(absl::ToInt64Milliseconds(options_.timeout / 2)));
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // A channel of one's own: a client made later tries at once.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Retries are counted here.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return arguments;
}

void Calls::SetDeadline(grpc::ClientContext& context, absl::Duration timeout) {
  // Beyond a year is no deadline that anybody waits for.
  const absl::Duration bounded = std::min(timeout, absl::Hours(24 * 365));
  context.set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          absl::ToChronoNanoseconds(bounded)));
}

absl::Status Calls::Came(const absl::Status& status, absl::Duration took,
                         absl::Duration timeout) const {
  // The daemon knows our deadline too. Which end notices first is a race, and
  // must not decide what the user reads.
  if (absl::IsDeadlineExceeded(status) && took >= timeout * 0.9) {
    return absl::DeadlineExceededError(kOwnDeadline);
  }
  if (status.ok()) let_in_ = true;
  return connection_.Refused(status);
}

absl::Status Calls::Retry(
    absl::Duration timeout,
    const std::function<absl::Status(absl::Duration left)>& attempt) const {
  RetryPolicy policy;
  policy.max_attempts = std::max(options_.max_attempts, 1);
  return Explain(RetryUnavailable(
      policy, timeout, attempt, [] { return SteadyNow(); },
      [](absl::Duration wait) { absl::SleepFor(wait); }));
}

absl::Status Calls::TimedOut(absl::Duration after) const {
  return absl::DeadlineExceededError(absl::StrCat(
      target_.text, ": no answer within ", absl::FormatDuration(after),
      "; is the network there slow or the daemon stuck? a longer timeout "
      "may help"));
}

absl::Status Calls::FellSilent(absl::Duration after) const {
  return absl::DeadlineExceededError(
      absl::StrCat(target_.text, ": answered, and then nothing for ",
                   absl::FormatDuration(after),
                   "; is the network there broken or the daemon stuck?"));
}

absl::Status Calls::Explain(const absl::Status& status) const {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      // Connected, and then nothing: a daemon that is stuck or frozen.
      if (absl::StrContains(status.message(), "timed out")) {
        return TimedOut(options_.timeout / 2);
      }
      // Once: who is let in no longer is to know.
      return ExplainUnavailable(target_, connection_.identity(),
                                let_in_.exchange(false), status);
    case absl::StatusCode::kDeadlineExceeded:
      // The daemon's own text says more than gRPC's.
      if (status.message() != kOwnDeadline) return status;
      return TimedOut(options_.timeout);
    case absl::StatusCode::kUnimplemented:
      return absl::UnimplementedError(
          absl::StrCat(target_.text, ": the daemon does not know this call (",
                       status.message(),
                       "); it is of another version, see `dflctl "
                       "version`"));
    default:
      return status;
  }
}

}  // namespace client
}  // namespace dfl
