#include "daemon/control/answers.h"

#include <algorithm>
#include <chrono>  // NOLINT(build/c++11): gRPC's deadlines
#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "proto/grpc_status.h"

namespace dfl::control {

Answers::Answers(Timers& timers, const ControlServerOptions& options)
    : options_(options), pending_(timers) {}

Reactor* Answers::Now(const Call& call, const absl::Status& status) {
  Reactor* reactor = call.context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

Reactor* Answers::NowAudited(const Call& call, std::string what,
                             const absl::Status& status) {
  if (options_.audit) options_.audit({call.caller, std::move(what), status});
  return Now(call, status);
}

std::shared_ptr<PendingCalls::Call> Answers::Later(const Call& call,
                                                   Reactor* reactor,
                                                   std::string what,
                                                   Patience patience) {
  const auto kind = what.empty() ? PendingCalls::Kind::kQuestion
                                 : PendingCalls::Kind::kChange;
  return Add(call, reactor, kind, std::move(what), patience);
}

std::shared_ptr<PendingCalls::Call> Answers::LaterOrder(const Call& call,
                                                        Reactor* reactor,
                                                        std::string what,
                                                        Patience patience) {
  return Add(call, reactor, PendingCalls::Kind::kOrder, std::move(what),
             patience);
}

std::shared_ptr<PendingCalls::Call> Answers::Add(const Call& call,
                                                 Reactor* reactor,
                                                 PendingCalls::Kind kind,
                                                 std::string what,
                                                 Patience patience) {
  const absl::Duration left = absl::FromChrono(
      call.context->deadline() - std::chrono::system_clock::now());
  std::function<void(const absl::Status&)> on_finish;
  if (options_.audit && !what.empty()) {
    on_finish = [this, caller = call.caller,
                 what = std::move(what)](const absl::Status& status) {
      options_.audit({caller, what, status});
    };
  }
  const absl::Duration most = patience == Patience::kDisk
                                  ? options_.max_disk_time
                                  : options_.max_call_time;
  return pending_.Add(reactor, std::min(left, most), kind,
                      std::move(on_finish));
}

void Answers::Close() { pending_.Close(); }

}  // namespace dfl::control
