#include "daemon/control/watch_hub.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/control/event_proto.h"
#include "daemon/control/status_proto.h"
#include "proto/grpc_status.h"

namespace dfl::control {
namespace {

namespace pb = dfl::control::v1;

constexpr size_t kMaxEvents = 256;
constexpr absl::Duration kCheckPeriod = absl::Seconds(1);

absl::Status GoingDown() {
  return absl::UnavailableError("the daemon is going down");
}

}  // namespace

// What streams share with the hub, for as long as any of them lives.
struct WatchHub::State {
  State(Backend& b, Timers& t, int max)
      : backend(b), timers(t), max_watchers(max) {}

  Backend& backend;
  Timers& timers;
  const int max_watchers;
  absl::Mutex mutex;
  bool stopped ABSL_GUARDED_BY(mutex) = false;
  std::set<std::shared_ptr<Stream>> streams ABSL_GUARDED_BY(mutex);
};

// One watcher. Whoever sets `writing_` owns `response_` until OnWriteDone;
// whoever sets `ended_` calls Finish, and then no write is in flight.
class WatchHub::Stream : public grpc::ServerWriteReactor<pb::WatchResponse> {
 public:
  Stream(std::shared_ptr<State> state, absl::Duration interval,
         std::function<absl::Status()> allowed)
      : state_(std::move(state)),
        interval_(interval),
        allowed_(std::move(allowed)) {}

  // After it is in the hub's set.
  void Begin(const std::shared_ptr<Stream>& self) {
    self_ = self;
    state_->timers.After(absl::ZeroDuration(), TickTask());
    state_->timers.After(kCheckPeriod, CheckTask());
  }

  void Append(const pb::Event& event, bool urgent) ABSL_LOCKS_EXCLUDED(mutex_) {
    bool pump = false;
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return;
      events_.push_back(event);
      if (events_.size() > kMaxEvents) {
        events_.pop_front();
        ++dropped_;
      }
      if (urgent) {
        pump = !due_;
        due_ = true;
      }
    }
    if (pump) state_->timers.After(absl::ZeroDuration(), PumpTask());
  }

  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (ended_ || ending_.has_value()) return;
      if (writing_) {
        ending_ = status;  // OnWriteDone finishes
        return;
      }
      ended_ = true;
    }
    Finish(ToGrpc(status));
  }

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::Status status;
    bool pump = false;
    {
      absl::MutexLock lock(&mutex_);
      writing_ = false;
      if (ok && !ending_.has_value()) {
        if (!due_) return;
        pump = true;
      } else {
        ended_ = true;
        status = ending_.value_or(absl::CancelledError("the watcher left"));
      }
    }
    if (pump) {
      state_->timers.After(absl::ZeroDuration(), PumpTask());
    } else {
      Finish(ToGrpc(status));
    }
  }

  void OnCancel() override { End(absl::CancelledError("the watcher left")); }

  void OnDone() override {
    std::shared_ptr<Stream> self = self_.lock();
    const std::shared_ptr<State> state = state_;
    absl::MutexLock lock(&state->mutex);
    state->streams.erase(self);
    // `self` goes with this scope, and the stream with it unless a task of the
    // timers holds it for a moment.
  }

 private:
  std::function<void()> TickTask() {
    return [weak = self_] {
      if (const std::shared_ptr<Stream> stream = weak.lock()) stream->Tick();
    };
  }
  std::function<void()> PumpTask() {
    return [weak = self_] {
      if (const std::shared_ptr<Stream> stream = weak.lock()) stream->Pump();
    };
  }

  std::function<void()> CheckTask() {
    return [weak = self_] {
      if (const std::shared_ptr<Stream> stream = weak.lock()) stream->Check();
    };
  }

  // Timers' thread.
  void Check() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return;
    }
    if (EndUnlessAllowed()) return;
    state_->timers.After(kCheckPeriod, CheckTask());
  }

  // True when the stream was ended.
  bool EndUnlessAllowed() ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Status allowed = allowed_();
    if (allowed.ok()) return false;
    End(allowed);
    return true;
  }

  // Timers' thread.
  void Tick() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (ended_) return;
      due_ = true;
    }
    state_->timers.After(interval_, TickTask());
    Pump();
  }

  // Timers' thread: writes one message if one is due and none under way.
  void Pump() ABSL_LOCKS_EXCLUDED(mutex_) {
    {
      absl::MutexLock lock(&mutex_);
      if (ended_ || ending_.has_value() || writing_ || !due_) return;
    }
    if (EndUnlessAllowed()) return;
    {
      absl::MutexLock lock(&mutex_);
      if (ended_ || ending_.has_value() || writing_ || !due_) return;
      writing_ = true;
      due_ = false;
      response_.Clear();
      for (pb::Event& event : events_) *response_.add_events() = event;
      events_.clear();
      response_.set_events_dropped(dropped_);
      dropped_ = 0;
    }
    ToProto(state_->backend.Status(), *response_.mutable_status());
    StartWrite(&response_);
  }

  const std::shared_ptr<State> state_;
  const absl::Duration interval_;
  const std::function<absl::Status()> allowed_;
  std::weak_ptr<Stream> self_;
  pb::WatchResponse response_;
  absl::Mutex mutex_;
  std::deque<pb::Event> events_ ABSL_GUARDED_BY(mutex_);
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
  bool due_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> ending_ ABSL_GUARDED_BY(mutex_);
};

namespace {

class Refusal : public grpc::ServerWriteReactor<pb::WatchResponse> {
 public:
  explicit Refusal(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

WatchHub::WatchHub(Backend& backend, Timers& timers, int max_watchers)
    : state_(std::make_shared<State>(backend, timers, max_watchers)) {
  subscription_ = backend.Subscribe([state = state_](const TimedEvent& event) {
    if (!IsWatched(event.event)) return;
    pb::Event message;
    ToProto(event, message);
    std::vector<std::shared_ptr<Stream>> streams;
    {
      absl::MutexLock lock(&state->mutex);
      streams.assign(state->streams.begin(), state->streams.end());
    }
    const bool urgent = IsUrgent(event.event);
    for (const auto& stream : streams) stream->Append(message, urgent);
  });
}

WatchHub::~WatchHub() { Stop(); }

grpc::ServerWriteReactor<pb::WatchResponse>* WatchHub::Open(
    absl::Duration interval, std::function<absl::Status()> allowed) {
  auto stream = std::make_shared<Stream>(state_, interval, std::move(allowed));
  absl::Status refused;
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->stopped) {
      refused = GoingDown();
    } else if (static_cast<int>(state_->streams.size()) >=
               state_->max_watchers) {
      refused = absl::ResourceExhaustedError(
          absl::StrCat(state_->max_watchers,
                       " watchers are connected, and no more are "
                       "allowed at once; end one of them"));
    } else {
      state_->streams.insert(stream);
    }
  }
  if (!refused.ok()) return Refuse(refused);
  stream->Begin(stream);
  return stream.get();
}

grpc::ServerWriteReactor<pb::WatchResponse>* WatchHub::Refuse(
    const absl::Status& status) {
  return new Refusal(status);
}

void WatchHub::Stop() {
  subscription_.reset();
  std::vector<std::shared_ptr<Stream>> streams;
  {
    absl::MutexLock lock(&state_->mutex);
    state_->stopped = true;
    streams.assign(state_->streams.begin(), state_->streams.end());
  }
  for (const auto& stream : streams) stream->End(GoingDown());
}

}  // namespace dfl::control
