#include "daemon/control/pending_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/grpc_status.h"

namespace dfl::control {
namespace {

absl::Status GoingDown() {
  return absl::UnavailableError(
      "the daemon is going down; ask again once it is back");
}

// Nobody else writes `begun` once the call is taken.
const char* What(PendingCalls::Kind kind, bool begun) {
  if (kind == PendingCalls::Kind::kQuestion) return "";
  if (kind == PendingCalls::Kind::kOrder && !begun) {
    return ". The order was not begun and will not be carried out";
  }
  return ". The order may still be carried out: look before you repeat it";
}

}  // namespace

bool PendingCalls::Call::Take() {
  const std::shared_ptr<Call> self = self_.lock();
  absl::MutexLock lock(&registry_->mutex);
  return registry_->calls.erase(self) > 0;
}

bool PendingCalls::Call::Begin() {
  const std::shared_ptr<Call> self = self_.lock();
  absl::MutexLock lock(&registry_->mutex);
  begun_ = registry_->calls.count(self) > 0;
  return begun_;
}

void PendingCalls::Call::Finish(const absl::Status& status) {
  if (on_finish_) on_finish_(status);
  reactor_->Finish(ToGrpc(status));
}

PendingCalls::PendingCalls(Timers& timers)
    : timers_(timers), registry_(std::make_shared<Call::Registry>()) {}

PendingCalls::~PendingCalls() { Close(); }

std::shared_ptr<PendingCalls::Call> PendingCalls::Add(
    grpc::ServerUnaryReactor* reactor, absl::Duration timeout, Kind kind,
    std::function<void(const absl::Status&)> on_finish) {
  auto call = std::make_shared<Call>();
  call->registry_ = registry_;
  call->self_ = call;
  call->reactor_ = reactor;
  call->on_finish_ = std::move(on_finish);
  bool closed = false;
  {
    absl::MutexLock lock(&registry_->mutex);
    closed = registry_->closed;
    if (!closed) registry_->calls.insert(call);
  }
  if (closed) {
    call->Finish(GoingDown());
    return call;
  }
  timers_.After(timeout, [weak = std::weak_ptr<Call>(call), timeout, kind] {
    const std::shared_ptr<Call> late = weak.lock();
    if (late == nullptr || !late->Take()) return;
    late->Finish(absl::DeadlineExceededError(absl::StrCat(
        "the node did not answer within ", absl::FormatDuration(timeout),
        "; it may be busy or stuck: look at its status and log",
        What(kind, late->begun_))));
  });
  return call;
}

void PendingCalls::Close() {
  std::set<std::shared_ptr<Call>> calls;
  {
    absl::MutexLock lock(&registry_->mutex);
    registry_->closed = true;
    calls.swap(registry_->calls);
  }
  for (const std::shared_ptr<Call>& call : calls) call->Finish(GoingDown());
}

}  // namespace dfl::control
